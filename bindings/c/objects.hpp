/// \file
/// Defines the objects that handles of the C API stand for.
#pragma once

#include <atomic>
#include <chorale/config.hpp>
#include <chorale/exchange.hpp>
#include <chorale/executor.hpp>
#include <chorale/plan.hpp>
#include <chorale/tuned_plans.hpp>
#include <chorale/world.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "handles.hpp"

namespace chorale::c {

struct ConfigObject {
  std::mutex mutex;
  std::string ini;                               ///< the file's name; "": none
  std::vector<std::string> environment;          ///< "CHORALE_TIMEOUT=10s", as it was at the load
  std::map<std::string, std::string> overrides;  ///< by the variable's name
  Config config;
};

struct WorldObject {
  explicit WorldObject(World of) : world(std::move(of)) {}

  World world;
  std::atomic<bool> in_use{false};  ///< true while a call uses the world or its executors
};

struct PlanObject {
  std::shared_ptr<const Plan> plan;
};

/// Holds an object that belongs to a world. The world stays alive as long as the object.
template <class T>
struct InWorld {
  std::shared_ptr<WorldObject> world;  ///< `object` refers to it
  T object;
};
struct ExecutorObject : InWorld<Executor> {};
struct ExchangeObject : InWorld<Exchange> {};

struct TunedPlansObject {
  explicit TunedPlansObject(TunedPlans of) : plans(std::move(of)) {}

  std::mutex mutex;  ///< guards `plans`
  TunedPlans plans;
};

/// Returns the settings of a handle. For null it returns those of the file and the environment.
Config config_of(const chorale_config* config);

/// Returns the settings of a handle for a backend. It does not check that the device exists.
/// \throws UsageError for a device number that is never valid
Config config_on(const chorale_config* config, chorale_backend backend, int32_t device);

/// Enqueues or runs a plan, as chorale_executor_execute() does.
void execute(ExecutorObject& executor, const Plan& plan, const Arguments& arguments, void* stream);

/// Runs `call` on an object that belongs to a world, while no other thread is in a call of that world.
template <class Handle, class Call>
void alone(const Handle* handle, const Call& call) {
  const auto in_world = get(handle);
  const Use use(in_world->world->in_use);
  call(in_world->object);
}

/// Closes an object that belongs to a world, while no other thread is in a call of that world.
template <class Handle>
void close_alone(const Handle* handle) {
  const std::shared_ptr<WorldObject> world = get(handle)->world;
  const Use use(world->in_use);
  take(handle);
}

}  // namespace chorale::c
