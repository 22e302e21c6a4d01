/// \file
/// Maps handles of the C API, which are numbers, to objects. A number is given out once, so a closed handle
/// never becomes valid again. An object stays alive until the calls that use it have returned.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "chorale/chorale.h"

namespace chorale::c {

struct ConfigObject;
struct WorldObject;
struct PlanObject;
struct ExecutorObject;
struct TunedPlansObject;
struct ExchangeObject;

enum class Kind : uint8_t { config, world, plan, executor, tuned_plans, exchange };

/// Maps a handle's type to the object that it stands for.
template <class Handle>
struct Of;
template <class ObjectType, Kind object_kind>
struct HandleOf {
  using Object = ObjectType;
  static constexpr Kind kind = object_kind;
};
template <>
struct Of<chorale_config> : HandleOf<ConfigObject, Kind::config> {};
template <>
struct Of<chorale_world> : HandleOf<WorldObject, Kind::world> {};
template <>
struct Of<chorale_plan> : HandleOf<PlanObject, Kind::plan> {};
template <>
struct Of<chorale_executor> : HandleOf<ExecutorObject, Kind::executor> {};
template <>
struct Of<chorale_tuned_plans> : HandleOf<TunedPlansObject, Kind::tuned_plans> {};
template <>
struct Of<chorale_exchange> : HandleOf<ExchangeObject, Kind::exchange> {};

uint64_t add_handle(Kind kind, std::shared_ptr<void> object);
/// Returns the object of a handle.
/// \param takes  true to invalidate the handle
/// \throws StatusError invalid_handle if the number is not a handle of this kind
std::shared_ptr<void> find_handle(Kind kind, uint64_t number, bool takes);

/// Makes a handle for an object.
/// \throws std::bad_alloc
template <class Handle>
Handle* open(std::shared_ptr<typename Of<Handle>::Object> object) {
  // NOLINTNEXTLINE: the pointer is a number, never an address
  return reinterpret_cast<Handle*>(uintptr_t(add_handle(Of<Handle>::kind, std::move(object))));
}
template <class Handle>
std::shared_ptr<typename Of<Handle>::Object> get(const Handle* handle) {
  return std::static_pointer_cast<typename Of<Handle>::Object>(
      find_handle(Of<Handle>::kind, reinterpret_cast<uintptr_t>(handle), false));
}
/// Returns the object of a handle, as get() does, and closes the handle.
template <class Handle>
std::shared_ptr<typename Of<Handle>::Object> take(const Handle* handle) {
  return std::static_pointer_cast<typename Of<Handle>::Object>(
      find_handle(Of<Handle>::kind, reinterpret_cast<uintptr_t>(handle), true));
}

/// Reserves a world for one thread while the Use exists.
/// \throws StatusError in_use if another thread has the world
class Use {
 public:
  explicit Use(std::atomic<bool>& in_use);
  ~Use() { in_use_.store(false, std::memory_order_release); }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  std::atomic<bool>& in_use_;
};

}  // namespace chorale::c
