/// \file
/// This file has the types that several parts of the module use: plans, settings and simulations as Python's
/// objects.
#pragma once

#include <pybind11/pybind11.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "chorale/config.hpp"
#include "chorale/packet_form.hpp"
#include "findings.hpp"

namespace chorale::python {

/// This is Python's chorale.Plan.
struct PlanObject {
  SharedPlan plan;
};

inline PlanObject object_of(Plan plan) { return {std::make_shared<const Plan>(std::move(plan))}; }

/// Holds settings by name, such as {"timeout": "10s"}.
using Settings = std::map<std::string, std::string>;

/// Returns the settings of the ini file and the environment, replaced by these.
/// \throws UsageError as Config::load()
Config config_of(const Settings& settings);
/// Does the same with keywords of a call, such as timeout="10s", workers=2.
Config config_from(const pybind11::kwargs& keywords);

/// \throws std::invalid_argument with the words that exist
std::optional<PacketForm> packet_of(const std::optional<std::string>& word);

void declare_plan(pybind11::module_&);
void declare_language(pybind11::module_&);
void declare_world(pybind11::module_&);
void declare_executor(pybind11::module_&);
void declare_exchange(pybind11::module_&);
void declare_tuned_plans(pybind11::module_&);

}  // namespace chorale::python
