#include <fmt/format.h>

#include <chorale/error.hpp>

#include "device.hpp"
#include "objects.hpp"
#include "status.hpp"
#include "values.hpp"

using namespace chorale;
using namespace chorale::c;

void chorale::c::execute(ExecutorObject& executor, const Plan& plan, const Arguments& arguments,
                         void* stream) {
  const Use use(executor.world->in_use);
  executor.object.execute(plan, arguments, stream);
}

Config chorale::c::config_on(const chorale_config* config, chorale_backend backend, int32_t device) {
  Config settings = config_of(config);
  if (const std::string name = backend_of(backend); !name.empty()) settings.backend = name;
  if (device < CHORALE_CURRENT_DEVICE)
    throw UsageError(
        fmt::format("device {}: neither a GPU's number nor CHORALE_CURRENT_DEVICE (-1)", device));
  if (settings.backend.value != "cuda" && device != CHORALE_CURRENT_DEVICE) {
    throw UsageError(
        fmt::format("device {} of the backend '{}' ({}), which has none: pass CHORALE_CUDA, or "
                    "CHORALE_CURRENT_DEVICE (-1)",
                    device, settings.backend.value, settings.backend.from));
  }
  return settings;
}

chorale_status chorale_executor_create(chorale_world* world, chorale_config* config, chorale_backend backend,
                                       int32_t device, chorale_executor** executor) {
  return guarded(__func__, [&] {
    chorale_executor*& out = result("executor", executor);
    const std::shared_ptr<WorldObject> of = get(world);
    const Config settings = config_on(config, backend, device);
    const Use use(of->in_use);
    make_current(device);
    out = c::open<chorale_executor>(
        std::make_shared<ExecutorObject>(ExecutorObject{{of, Executor(of->world, settings)}}));
  });
}

chorale_status chorale_executor_prepare(chorale_executor* executor, chorale_plan* plan,
                                        const chorale_arguments* arguments) {
  return guarded(__func__, [&] {
    const std::shared_ptr<PlanObject> of = get(plan);
    const Arguments call = arguments_of(arguments);
    check_with_plan(arguments, *of->plan);
    alone(executor, [&](Executor& on) { on.prepare(*of->plan, call); });
  });
}

chorale_status chorale_executor_execute(chorale_executor* executor, chorale_plan* plan,
                                        const chorale_arguments* arguments, void* stream) {
  return guarded(__func__, [&] {
    const std::shared_ptr<ExecutorObject> on = get(executor);
    const std::shared_ptr<PlanObject> of = get(plan);
    const Arguments call = arguments_of(arguments);
    check_with_plan(arguments, *of->plan);
    execute(*on, *of->plan, call, stream);
  });
}

chorale_status chorale_executor_check(chorale_executor* executor) {
  return guarded(__func__, [&] { alone(executor, [](Executor& on) { on.check(); }); });
}

chorale_status chorale_executor_synchronize(chorale_executor* executor, void* stream) {
  return guarded(__func__, [&] { alone(executor, [&](Executor& on) { on.synchronize(stream); }); });
}

chorale_status chorale_executor_allocate(chorale_executor* executor, uint64_t bytes, void** memory) {
  return guarded(__func__, [&] {
    void*& out = result("memory", memory);
    alone(executor, [&](Executor& on) { out = on.allocate(bytes); });
  });
}

chorale_status chorale_executor_close(chorale_executor* executor) {
  return guarded(__func__, [&] { close_alone(executor); });
}
