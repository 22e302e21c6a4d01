#include <fmt/format.h>

#include <chorale/make_plan.hpp>
#include <chorale/read_file.hpp>

#include "objects.hpp"
#include "status.hpp"
#include "values.hpp"

using namespace chorale;
using namespace chorale::c;

namespace {

TuneTable table_of(const char* path) {
  if (!path) return {};
  const std::string text = [path] {
    try {
      return read_file(path);
    } catch (const std::runtime_error& error) {
      throw StatusError(CHORALE_UNREADABLE_FILE, error.what());
    }
  }();
  try {
    return TuneTable::parse(text);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", path, error.what()));
  }
}

struct Chosen {
  TunedPlans::Choice choice;
  std::shared_ptr<const Plan> plan;  ///< belongs to the handle's object, which this pointer keeps alive
};

Chosen choose(const chorale_tuned_plans* plans, const char* collective, uint64_t bytes, DType dtype) {
  const std::shared_ptr<TunedPlansObject> object = get(plans);
  const std::lock_guard lock(object->mutex);
  const TunedPlans::Choice choice = object->plans.choose(text("collective", collective), bytes, dtype);
  return {choice, std::shared_ptr<const Plan>(object, &object->plans.plan(choice))};
}

}  // namespace

chorale_status chorale_tuned_plans_open(const char* table, const char* folder, int32_t ranks,
                                        chorale_backend backend, const char* device, int32_t rank_order,
                                        chorale_tuned_plans** plans) {
  return guarded(__func__, [&] {
    chorale_tuned_plans*& out = result("plans", plans);
    if (ranks < 1) throw UsageError(fmt::format("{} ranks: there must be at least 1", ranks));
    const TunedFor machine{.ranks = ranks,
                           .backend = backend_of(backend),
                           .device = device ? device : "",
                           .rank_order = flag_of("rank_order", rank_order)};
    if (machine.backend.empty())
      throw UsageError("a table belongs to a backend: pass CHORALE_CPU (1) or CHORALE_CUDA (2), not 0");
    TunedPlans made(table_of(table), folder ? folder : "", machine,
                    [](const std::string& name, int count) { return make_plan(name, count); });
    out = c::open<chorale_tuned_plans>(std::make_shared<TunedPlansObject>(std::move(made)));
  });
}

chorale_status chorale_tuned_plans_set_max_blocks(chorale_tuned_plans* plans, int32_t max_blocks) {
  return guarded(__func__, [&] {
    const std::shared_ptr<TunedPlansObject> object = get(plans);
    if (max_blocks < 0)
      throw UsageError(
          fmt::format("max_blocks is {}, but must be at least 1, or 0 for any number", max_blocks));
    const std::lock_guard lock(object->mutex);
    object->plans.set_max_blocks(uint32_t(max_blocks));
  });
}

chorale_status chorale_tuned_plans_choose(chorale_tuned_plans* plans, const char* collective, uint64_t bytes,
                                          chorale_dtype dtype, chorale_plan** plan, chorale_packet* packet) {
  return guarded(__func__, [&] {
    chorale_plan*& out = result("plan", plan);
    if (packet) *packet = CHORALE_PACKET_OF_CONFIG;
    const Chosen chosen = choose(plans, collective, bytes, dtype_of(dtype));
    out = c::open<chorale_plan>(std::make_shared<PlanObject>(PlanObject{chosen.plan}));
    if (packet) *packet = packet_number(chosen.choice.packet);
  });
}

chorale_status chorale_tuned_plans_explain(chorale_tuned_plans* plans, const char* collective, uint64_t bytes,
                                           chorale_dtype dtype, char** text) {
  return guarded(__func__, [&] {
    char*& out = result("text", text);
    const std::shared_ptr<TunedPlansObject> object = get(plans);
    const std::lock_guard lock(object->mutex);
    out = give_text(object->plans.choose(c::text("collective", collective), bytes, dtype_of(dtype)).words());
  });
}

chorale_status chorale_tuned_plans_execute(chorale_tuned_plans* plans, chorale_executor* executor,
                                           const char* collective, const chorale_arguments* arguments,
                                           void* stream) {
  return guarded(__func__, [&] {
    const std::shared_ptr<ExecutorObject> on = get(executor);
    Arguments call = arguments_of(arguments);
    const Chosen chosen = choose(plans, collective, call.bytes, call.dtype);
    check_with_plan(arguments, *chosen.plan);
    call.packet = chosen.choice.packet;
    execute(*on, *chosen.plan, call, stream);
  });
}

chorale_status chorale_tuned_plans_close(chorale_tuned_plans* plans) {
  return guarded(__func__, [&] { take(plans); });
}
