/// \file
/// WorldObject is Python's World. Made holds what is made with a world, such as an Executor.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <set>
#include <stdexcept>
#include <utility>

#include "chorale/world.hpp"

namespace chorale::python {

/// An object of a world is made with the world, and has to end before it.
class OfWorld {
 public:
  virtual ~OfWorld() = default;
  virtual void end() = 0;
};

/// This is Python's World. run_local() owns the handles of its bodies, and ends them.
struct WorldObject {
  std::unique_ptr<World> own;
  World* lent = nullptr;
  std::set<OfWorld*> dependents;  // Python may keep them longer, for example in a traceback

  /// Ends a handle that was lent, and what was made with it.
  void end() {
    for (OfWorld* const dependent : dependents) dependent->end();
    lent = nullptr;
  }

  World& get() const {
    if (own) return *own;
    if (lent) return *lent;
    throw std::runtime_error(
        "this World ended when the body of run_local() returned; use it inside the body");
  }
};
using SharedWorld = std::shared_ptr<WorldObject>;

/// Holds an Executor or an Exchange, until its world ends.
template <class Kind>
class Made : public OfWorld {
 public:
  template <class... Options>
  Made(SharedWorld world, const Options&... options) : world_(std::move(world)) {
    World& of = world_->get();
    {
      pybind11::gil_scoped_release release;
      made_ = std::make_unique<Kind>(of, options...);
    }
    world_->dependents.insert(this);
  }
  ~Made() override {
    world_->dependents.erase(this);
    end();
  }
  Made(const Made&) = delete;

  /// Frees it without the GIL, because that may wait for work.
  void end() override {
    pybind11::gil_scoped_release release;
    made_.reset();
  }

  Kind& get() const {
    if (!made_)
      throw std::runtime_error(
          "this object ended with its World when the body of run_local() returned; use it inside the body");
    return *made_;
  }

 private:
  SharedWorld world_;
  std::unique_ptr<Kind> made_;
};

/// Returns the stream that Python names by a number.
inline void* stream_of(uintptr_t stream) { return reinterpret_cast<void*>(stream); }

}  // namespace chorale::python
