#include <fmt/format.h>

#include <algorithm>
#include <chorale/compile.hpp>
#include <chorale/error.hpp>
#include <chorale/json.hpp>
#include <chorale/layout.hpp>
#include <chorale/make_plan.hpp>
#include <chorale/needs.hpp>
#include <string_view>

#include "objects.hpp"
#include "status.hpp"
#include "values.hpp"

using namespace chorale;
using namespace chorale::c;

namespace {

chorale_plan* opened(Plan plan) {
  return c::open<chorale_plan>(
      std::make_shared<PlanObject>(PlanObject{std::make_shared<const Plan>(std::move(plan))}));
}

/// Reads the settings, each in the form "instances=16".
dsl::Parameters::Settings settings_of(const char* const* settings, uint64_t count) {
  dsl::Parameters::Settings all;
  if (count != 0) required("settings", settings);
  for (uint64_t at = 0; at < count; ++at) {
    const std::string_view entry = text("settings", settings[at]);
    const size_t equals = entry.find('=');
    if (equals == entry.npos || equals == 0)
      throw UsageError(fmt::format("setting '{}' does not have the form instances=16", entry));
    all.insert_or_assign(std::string(entry.substr(0, equals)), std::string(entry.substr(equals + 1)));
  }
  return all;
}

}  // namespace

chorale_status chorale_plan_load(const char* path, chorale_plan** plan) {
  return guarded(__func__, [&] {
    chorale_plan*& out = result("plan", plan);
    const std::string file = text("path", path);
    try {
      out = opened(load(file));
    } catch (const PlanError&) {
      throw;
    } catch (const std::runtime_error& error) {
      throw StatusError(CHORALE_UNREADABLE_FILE, error.what());
    }
  });
}

chorale_status chorale_plan_read(const void* data, uint64_t bytes, chorale_plan** plan) {
  return guarded(__func__, [&] {
    chorale_plan*& out = result("plan", plan);
    out = opened(read(std::string_view(static_cast<const char*>(required("data", data)), bytes)));
  });
}

chorale_status chorale_plan_make(const char* name, int32_t ranks, const char* const* settings, uint64_t count,
                                 chorale_plan** plan) {
  return guarded(__func__, [&] {
    chorale_plan*& out = result("plan", plan);
    out = opened(make_plan(text("name", name), ranks, settings_of(settings, count)));
  });
}

chorale_status chorale_plan_json(chorale_plan* plan, char** text) {
  return guarded(__func__, [&] {
    char*& out = result("text", text);
    out = give_text(write(*get(plan)->plan));
  });
}

chorale_status chorale_plan_prove(chorale_plan* plan, char** findings) {
  return guarded(__func__, [&] {
    if (findings) *findings = nullptr;
    const std::shared_ptr<const Plan> proved = get(plan)->plan;
    Diagnostics found = check(*proved);
    if (found.empty()) found = prove(*proved);
    if (found.empty()) return;
    const std::string words = render(*proved, found);
    if (findings) *findings = give_text(words);
    throw StatusError(CHORALE_INVALID_PLAN, fmt::format("plan '{}' is wrong:\n{}", proved->name, words));
  });
}

chorale_status chorale_plan_describe(chorale_plan* plan, chorale_plan_info* info) {
  return guarded(__func__, [&] {
    const std::shared_ptr<PlanObject> object = get(plan);
    const Plan& of = *object->plan;
    fill("info", info,
         {.struct_bytes = 0,
          .name = of.name.c_str(),
          .collective = of.collective.c_str(),
          .ranks = int32_t(of.ranks()),
          .in_place = of.inplace,
          .min_message_bytes = of.min_message_size,
          .max_message_bytes = of.max_message_size,
          .message_parts = message_segments(of)});
  });
}

chorale_status chorale_plan_message_sizes(chorale_plan* plan, uint64_t bytes, chorale_dtype dtype,
                                          uint64_t* input, uint64_t* output) {
  return guarded(__func__, [&] {
    uint64_t& in = result("input", input);
    uint64_t& out = result("output", output);
    const MessageSizes sizes = message_sizes(*get(plan)->plan, bytes, dtype_of(dtype));
    in = sizes.input;
    out = sizes.output;
  });
}

chorale_status chorale_plan_needs(chorale_plan* plan, int32_t rank, uint64_t bytes, chorale_dtype dtype,
                                  chorale_needs* needs) {
  return guarded(__func__, [&] {
    const std::shared_ptr<PlanObject> object = get(plan);
    const Plan& of = *object->plan;
    if (rank < 0 || uint32_t(rank) >= of.ranks())
      throw UsageError(
          fmt::format("there is no rank {} in plan '{}', which is for {} ranks", rank, of.name, of.ranks()));
    const RankNeeds known = needs_of(of, uint32_t(rank), bytes, dtype_of(dtype));
    fill("needs", needs,
         {.struct_bytes = 0,
          .scratch_bytes = known.scratch_bytes,
          .thread_blocks = known.thread_blocks,
          .input_reached = known.input_reached,
          .output_reached = known.output_reached,
          .reserved = 0});
  });
}

chorale_status chorale_plan_close(chorale_plan* plan) {
  return guarded(__func__, [&] { take(plan); });
}
