#pragma once
/// \file
/// PlanError reports a text that is not a plan.

#include <stdexcept>
#include <string>
#include <utility>

namespace chorale {

/// Reports that a text is not a plan. what() is "<path>: <the finding>", for example "/gpus/0/id: 3, expected
/// 0" or "/gpus/0: the key "id" is missing". load() puts the name of the file in front.
struct PlanError : std::runtime_error {
  PlanError(std::string path, const std::string& message)
      : std::runtime_error(path + ": " + message), json_path(std::move(path)) {}
  PlanError(const std::string& file, const PlanError& error)
      : std::runtime_error(file + ": " + error.what()), json_path(error.json_path) {}
  std::string json_path;  ///< e.g. "/gpus/0/threadblocks/1/ops/3/src_buff/0/index"
};

}  // namespace chorale
