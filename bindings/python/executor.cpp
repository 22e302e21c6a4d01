#include "chorale/executor.hpp"

#include <fmt/format.h>
#include <pybind11/functional.h>
#include <pybind11/stl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "chorale/collective.hpp"
#include "chorale/exchange.hpp"
#include "chorale/layout.hpp"
#include "chorale/make_plan.hpp"
#include "chorale/tuned_plans.hpp"
#include "chorale/world.hpp"
#include "objects.hpp"

namespace py = pybind11;

namespace chorale::python {
namespace {

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

SharedWorld owned(World world) {
  const auto object = std::make_shared<WorldObject>();
  object->own = std::make_unique<World>(std::move(world));
  return object;
}

/// Reads keywords as settings: timeout="10s", workers=2.
Settings settings_of(const py::kwargs& keywords) {
  Settings settings;
  for (const auto& [key, value] : keywords) settings[key.cast<std::string>()] = py::str(value);
  return settings;
}

Config config_from(const py::kwargs& keywords) {
  const Settings settings = settings_of(keywords);
  return config_of(settings);
}

/// Turns Python's RunError back into the C++ exception, so that run_local() can tell a cause from an effect.
[[noreturn]] void rethrow(py::error_already_set& error) {
  const py::module_ errors = py::module_::import("chorale._errors");
  if (error.matches(errors.attr("RunError"))) {
    const auto word = error.value().attr("reason").cast<std::string>();
    for (int reason = 0; reason <= int(RunError::Reason::other); ++reason) {
      if (word == name(RunError::Reason(reason)))
        throw RunError(RunError::Reason(reason), py::str(error.value()).cast<std::string>());
    }
  }
  throw error;
}

void run_bodies(int ranks, const py::function& body, const py::kwargs& keywords) {
  const Config config = config_from(keywords);
  if (config.seed.value)
    throw std::invalid_argument(
        "run_local() of Python takes no seed, because Python's bodies run on threads; Plan.run(seed=...) "
        "takes one");
  py::gil_scoped_release release;
  run_local(
      ranks,
      [&](World& world) {
        py::gil_scoped_acquire acquire;
        const auto object = std::make_shared<WorldObject>();
        object->lent = &world;
        try {
          body(object);
        } catch (py::error_already_set& error) {
          object->end();
          rethrow(error);
        }
        object->end();
      },
      config.local());
}

void* stream_of(uintptr_t stream) { return reinterpret_cast<void*>(stream); }

/// Holds an Executor or an Exchange, until its world ends.
template <class Kind>
class Made : public OfWorld {
 public:
  template <class... Options>
  Made(SharedWorld world, const Options&... options) : world_(std::move(world)) {
    World& of = world_->get();
    {
      py::gil_scoped_release release;
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
    py::gil_scoped_release release;
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

class ExecutorObject : public Made<Executor> {
 public:
  ExecutorObject(SharedWorld world, const Config& config)
      : Made(std::move(world), config), on_gpu_(config.backend.value == "cuda") {}

  bool on_gpu() const { return on_gpu_; }

  Arguments arguments(const Plan& plan, const py::handle& input, const py::handle& output,
                      std::optional<uint64_t> bytes, const std::optional<std::string>& dtype,
                      const std::optional<std::string>& op, const std::optional<std::string>& packet) const {
    const Memory in = memory_of(input, "input"), out = memory_of(output, "output");
    const DType type = dtype_of(in, dtype, "input");
    if (!dtype && in.dtype != out.dtype)
      throw std::invalid_argument(
          fmt::format("input has elements of {} and output of {}; pass arrays of one type", in.dtype_name,
                      out.dtype_name));
    for (const auto& [memory, what] : {std::pair(&in, "input"), std::pair(&out, "output")}) {
      if (memory->on_gpu != on_gpu_)
        throw std::invalid_argument(fmt::format("{} is memory of {}, but this executor runs on {}", what,
                                                memory->on_gpu ? "a GPU" : "the CPU",
                                                on_gpu_ ? "a GPU" : "the CPU"));
    }
    if (!out.writable) throw std::invalid_argument("output is read-only; pass a writable array");
    const uint64_t message = bytes                                              ? *bytes
                             : collective_info(plan.collective).counts_output() ? out.bytes
                                                                                : in.bytes;
    const MessageSizes sizes = message_sizes(plan, message, type);
    if (in.bytes < sizes.input || out.bytes < sizes.output)
      throw std::invalid_argument(fmt::format(
          "a message of {} bytes of plan '{}' has an input of {} bytes and an output of {}, but these have "
          "{} and {}",
          message, plan.name, sizes.input, sizes.output, in.bytes, out.bytes));
    return {.in = in.data,
            .out = out.data,
            .bytes = message,
            .dtype = type,
            .op = op_of(op),
            .packet = packet_of(packet)};
  }

 private:
  bool on_gpu_;
};

/// Holds memory of Executor::allocate(), which lives as long as the executor.
struct Allocation {
  std::shared_ptr<ExecutorObject> executor;
  void* data;
  uint64_t bytes;
};

py::dict interface_of(const Allocation& self) {
  py::dict all;
  all["shape"] = py::make_tuple(self.bytes);
  all["typestr"] = "|u1";
  all["data"] = py::make_tuple(reinterpret_cast<uintptr_t>(self.data), false);
  all["version"] = 3;
  return all;
}

class ExchangeObject : public Made<Exchange> {
 public:
  using Messages = std::vector<std::pair<py::object, int>>;
  using Made::Made;

  void exchange(const Messages& sends, const Messages& recvs, uintptr_t stream) const {
    Exchange& exchange = get();
    std::vector<SendTo> out;
    std::vector<RecvFrom> in;
    for (const auto& [array, peer] : sends) {
      const Memory memory = memory_of(array, fmt::format("the message to rank {}", peer));
      out.push_back({memory.data, memory.bytes, peer});
    }
    for (const auto& [array, peer] : recvs) {
      const Memory memory = memory_of(array, fmt::format("the message from rank {}", peer));
      if (!memory.writable)
        throw std::invalid_argument(
            fmt::format("the array for the message from rank {} is read-only; pass a writable one", peer));
      in.push_back({memory.data, memory.bytes, peer});
    }
    py::gil_scoped_release release;
    exchange.exchange(out, in, stream_of(stream));
  }
};

/// Holds the chooser. Plans that it returns keep it alive.
struct TunedObject {
  TunedPlans plans;
};

PlanObject plan_of(const std::shared_ptr<TunedObject>& self, const TunedPlans::Choice& choice) {
  const Plan* plan = nullptr;
  {
    py::gil_scoped_release release;
    plan = &self->plans.plan(choice);
  }
  return {SharedPlan(self, plan)};
}

void declare_world(py::module_& module) {
  py::class_<WorldObject, SharedWorld>(
      module, "World",
      "One rank's handle on a group of ranks. Functions that are marked as collective must be called by all "
      "ranks, in the "
      "same order. Use a handle from one thread at a time; only abort() may be called from any thread.\n\n"
      "Keywords of the functions that make one are settings (docs/settings.md), such as timeout='10s'.")
      .def_static(
          "local",
          [](int ranks, const py::kwargs& keywords) {
            const Config config = config_from(keywords);
            std::vector<SharedWorld> all;
            for (World& world : World::local(ranks, config.local())) all.push_back(owned(std::move(world)));
            return all;
          },
          py::arg("ranks"),
          "Makes a handle for each rank, all in this process. Use each on a thread of its own.")
      .def_static(
          "join",
          [](const std::string& address, int rank, int ranks, const py::kwargs& keywords) {
            const Config config = config_from(keywords);
            py::gil_scoped_release release;
            return owned(World::join(address, rank, ranks, config.join()));
          },
          py::arg("address"), py::arg("rank"), py::arg("ranks"),
          "Joins a world of processes; collective. The address is 'shm://name' on one host, or "
          "'tcp://host:port'.\n\n"
          "Raises UsageError, RunError.")
      .def_static(
          "from_environment",
          [](const py::kwargs& keywords) {
            const Config config = config_from(keywords);
            py::gil_scoped_release release;
            return owned(World::from_environment(config.join()));
          },
          "Joins with the values that torchrun, mpirun or srun put into the environment; "
          "collective.\n\nRaises "
          "UsageError, RunError.")
      .def_property_readonly("rank", [](const WorldObject& self) { return self.get().rank(); })
      .def_property_readonly("ranks", [](const WorldObject& self) { return self.get().ranks(); })
      .def_property_readonly(
          "timeout_s",
          [](const WorldObject& self) { return std::chrono::duration<double>(self.get().timeout()).count(); },
          "Limit of every wait in seconds; 0: no limit.")
      .def_property_readonly(
          "local_world", [](const WorldObject& self) { return self.get().local(); },
          "True if all ranks live in this process.")
      .def(
          "host", [](const WorldObject& self, int rank) { return self.get().host(rank); }, py::arg("rank"),
          "Returns the number of the host that a rank is on.")
      .def(
          "barrier", [](const WorldObject& self) { self.get().barrier(); },
          py::call_guard<py::gil_scoped_release>(),
          "Waits until all ranks have called it; collective.\n\nRaises RunError.")
      .def(
          "allgather",
          [](const WorldObject& self, const py::bytes& bytes) {
            const std::string mine = bytes;
            std::vector<std::vector<std::byte>> all;
            {
              py::gil_scoped_release release;
              all = self.get().allgather(std::as_bytes(std::span(mine)));
            }
            py::list texts;
            for (const auto& one : all)
              texts.append(py::bytes(reinterpret_cast<const char*>(one.data()), one.size()));
            return texts;
          },
          py::arg("mine"), "Returns the bytes of every rank, by rank; collective.\n\nRaises RunError.")
      .def(
          "abort", [](const WorldObject& self, const std::string& why) { self.get().abort(why); },
          py::arg("why"), py::call_guard<py::gil_scoped_release>(),
          "Ends every pending and later wait of every rank with RunError 'aborted'.")
      .def(
          "reset", [](const WorldObject& self) { self.get().reset(); },
          py::call_guard<py::gil_scoped_release>(),
          "Makes the world usable again after an abort or a timeout; collective.\n\nRaises RunError.")
      .def(
          "check", [](const WorldObject& self) { self.get().check(); },
          "Raises the RunError of a world that has stopped; otherwise does nothing.")
      .def(
          "survivors",
          [](const WorldObject& self, const std::vector<int>& without) {
            py::gil_scoped_release release;
            return owned(self.get().survivors(without));
          },
          py::arg("without") = std::vector<int>(),
          "Returns a new world of the remaining ranks, in the old order; collective over these.\n\nRaises "
          "RunError, "
          "UsageError.")
      .def(
          "former_ranks", [](const WorldObject& self) { return self.get().former_ranks(); },
          "Returns, for each rank, its rank in the world whose survivors() made this one.")
      .def(
          "split",
          [](const WorldObject& self, std::optional<int> color, int key) -> SharedWorld {
            py::gil_scoped_release release;
            std::optional<World> made = self.get().split(color, key);
            return made ? owned(std::move(*made)) : nullptr;
          },
          py::arg("color"), py::arg("key") = 0,
          "Makes a new world of the ranks that pass the same color; collective. None for a rank whose color "
          "is "
          "None.\n\nRaises RunError, UsageError.")
      .def("__repr__", [](const WorldObject& self) {
        if (!self.own && !self.lent) return std::string("<chorale.World that has ended>");
        return fmt::format("<chorale.World: rank {} of {}>", self.get().rank(), self.get().ranks());
      });
  module.def("run_local", &run_bodies, py::arg("ranks"), py::arg("body"),
             "Calls body(world) once per rank of a local world, each on a thread, and waits for all of them. "
             "Keywords are "
             "settings.\n\nRaises the exception of the lowest rank that raised one.");
}

void declare_executors(py::module_& module) {
  py::class_<Allocation>(
      module, "Allocation",
      "Zeroed memory that peers can access directly, as bytes. numpy.asarray(it) on the CPU, and "
      "cupy.asarray(it) or torch.as_tensor(it) on GPUs, make an array of it.")
      .def("__getattr__",
           [](const Allocation& self, const std::string& name) {
             if (name == (self.executor->on_gpu() ? "__cuda_array_interface__" : "__array_interface__"))
               return interface_of(self);
             PyErr_SetString(PyExc_AttributeError, ("an Allocation has no attribute '" + name + "'").c_str());
             throw py::error_already_set();
           })
      .def("__len__", [](const Allocation& self) { return self.bytes; });
  py::class_<ExecutorObject, std::shared_ptr<ExecutorObject>>(
      module, "Executor",
      "Runs plans on one rank. All ranks make the same calls in the same order. Keywords are settings "
      "(docs/settings.md), such as backend='cuda'.\n\nRaises UsageError.")
      .def(py::init([](const SharedWorld& world, const py::kwargs& keywords) {
             return std::make_shared<ExecutorObject>(world, config_from(keywords));
           }),
           py::arg("world"))
      .def(
          "execute",
          [](ExecutorObject& self, const PlanObject& plan, const py::object& input, const py::object& output,
             std::optional<uint64_t> bytes, const std::optional<std::string>& dtype,
             const std::optional<std::string>& op, const std::optional<std::string>& packet,
             uintptr_t stream) {
            const Arguments arguments = self.arguments(*plan.plan, input, output, bytes, dtype, op, packet);
            py::gil_scoped_release release;
            self.get().execute(*plan.plan, arguments, stream_of(stream));
          },
          py::arg("plan"), py::arg("input"), py::arg("output"), py::arg("bytes") = py::none(),
          py::arg("dtype") = py::none(), py::arg("op") = py::none(), py::arg("packet") = py::none(),
          py::arg("stream") = 0,
          "Runs a plan once. Input and output are contiguous arrays: NumPy's, or with DLPack or "
          "__cuda_array_interface__.\n\n"
          "bytes: size of the message, that of the input, and for all-gather that of the output; default: "
          "the array's.\n"
          "dtype: 'f32', 'bf16', ...; default: the array's.\n"
          "op: replaces the plan's operator: 'sum', 'min', 'max', 'prod', 'avg'.\n"
          "packet: 'll8', 'll16', 'll128'.\n"
          "stream: a cudaStream_t as a number; with CUDA the call only enqueues.\n\n"
          "On the CPU it returns when this rank's part has ended. Raises UsageError, RunError.")
      .def(
          "prepare",
          [](ExecutorObject& self, const PlanObject& plan, const py::object& input, const py::object& output,
             std::optional<uint64_t> bytes, const std::optional<std::string>& dtype,
             const std::optional<std::string>& op, const std::optional<std::string>& packet) {
            const Arguments arguments = self.arguments(*plan.plan, input, output, bytes, dtype, op, packet);
            py::gil_scoped_release release;
            self.get().prepare(*plan.plan, arguments);
          },
          py::arg("plan"), py::arg("input"), py::arg("output"), py::arg("bytes") = py::none(),
          py::arg("dtype") = py::none(), py::arg("op") = py::none(), py::arg("packet") = py::none(),
          "Binds without running, so that the next execute() only launches.")
      .def(
          "synchronize",
          [](ExecutorObject& self, uintptr_t stream) { self.get().synchronize(stream_of(stream)); },
          py::arg("stream") = 0, py::call_guard<py::gil_scoped_release>(),
          "Waits for the stream, and raises the error of an earlier run.")
      .def(
          "check", [](ExecutorObject& self) { self.get().check(); },
          "Raises the error of an earlier run, if there was one. Never blocks.")
      .def(
          "allocate",
          [](const std::shared_ptr<ExecutorObject>& self, uint64_t bytes) {
            void* data = nullptr;
            {
              py::gil_scoped_release release;
              data = self->get().allocate(bytes);
            }
            return Allocation{self, data, bytes};
          },
          py::arg("bytes"),
          "Returns zeroed memory that peers can access directly; collective if ranks are processes.")
      .def(
          "trace", [](ExecutorObject& self) { return self.get().trace(); },
          "Returns the TraceSpans of this rank, of the last launches that the setting trace=N keeps.");
}

void declare_exchange(py::module_& module) {
  py::class_<ExchangeObject>(module, "Exchange",
                             "Moves messages whose sizes the host knows. Messages between two ranks match in "
                             "order, and sender and receiver name "
                             "the same size. slot_bytes, slots and blocks_per_peer size its rings; 0: the "
                             "library chooses. Further keywords are "
                             "settings.\n\nRaises UsageError, RunError.")
      .def(py::init([](const SharedWorld& world, uint64_t slot_bytes, uint32_t slots,
                       uint32_t blocks_per_peer, const py::kwargs& keywords) {
             return std::make_unique<ExchangeObject>(
                 world, ExchangeOptions{slot_bytes, slots, blocks_per_peer}, config_from(keywords));
           }),
           py::arg("world"), py::arg("slot_bytes") = 0, py::arg("slots") = 0, py::arg("blocks_per_peer") = 0)
      .def("exchange", &ExchangeObject::exchange, py::arg("sends"), py::arg("recvs"), py::arg("stream") = 0,
           "Moves all messages at once. sends and recvs are lists of (array, peer).\n\nRaises UsageError, "
           "RunError.")
      .def(
          "send",
          [](const ExchangeObject& self, const py::object& array, int peer, uintptr_t stream) {
            self.exchange({{array, peer}}, {}, stream);
          },
          py::arg("array"), py::arg("peer"), py::arg("stream") = 0,
          "Sends an array to a rank, which calls recv() with an array of as many bytes. On the CPU it "
          "returns when the "
          "array may be changed; with CUDA it only enqueues on the stream. Raises UsageError for a peer that "
          "does "
          "not exist, RunError if a wait times out or the peer has left.")
      .def(
          "recv",
          [](const ExchangeObject& self, const py::object& array, int peer, uintptr_t stream) {
            self.exchange({}, {{array, peer}}, stream);
          },
          py::arg("array"), py::arg("peer"), py::arg("stream") = 0,
          "Receives an array from a rank, as the counterpart of its send(). On the CPU it returns when the "
          "array has "
          "arrived; with CUDA it only enqueues on the stream. Raises as send().")
      .def(
          "synchronize",
          [](ExchangeObject& self, uintptr_t stream) { self.get().synchronize(stream_of(stream)); },
          py::arg("stream") = 0, py::call_guard<py::gil_scoped_release>(),
          "Waits until the work on the stream has ended. Raises the error of that work.")
      .def(
          "check", [](ExchangeObject& self) { self.get().check(); },
          "Raises the error of earlier messages, if there was one. Never blocks.")
      .def(
          "reset", [](ExchangeObject& self) { self.get().reset(); }, py::call_guard<py::gil_scoped_release>(),
          "Clears the rings; collective, after World.reset().");
}

void declare_tuned(py::module_& module) {
  py::class_<TunedPlans::Choice>(module, "Choice", "A plan that TunedPlans chose.")
      .def_readonly("collective", &TunedPlans::Choice::collective)
      .def_readonly("name", &TunedPlans::Choice::name)
      .def_property_readonly(
          "packet",
          [](const TunedPlans::Choice& self) {
            return self.packet ? std::optional(std::string(packet_form_names[size_t(*self.packet)]))
                               : std::nullopt;
          },
          "The form of packets for execute(), or None.")
      .def("__str__", &TunedPlans::Choice::words)
      .def("__repr__",
           [](const TunedPlans::Choice& self) { return "<chorale.Choice: " + self.words() + ">"; });
  py::class_<TunedObject, std::shared_ptr<TunedObject>>(
      module, "TunedPlans",
      "Chooses plans by collective and size: your own, those of the tuner's table, or defaults. Every rank "
      "chooses "
      "independently, so all ranks need the same table and the same plans.\n\n"
      "folder: a folder of plans with shipped/ and tuned/; default: the shipped plans.\n"
      "backend: 'cpu' or 'cuda'. device: the GPU's name.\n"
      "rank_order: choose only plans that add in the order of the ranks, so that sums have the same bits.")
      .def(
          py::init([](int ranks, const std::string& backend, const std::string& device, bool rank_order,
                      const std::optional<std::string>& folder) {
            const std::string of =
                folder ? *folder
                       : py::module_::import("chorale._paths").attr("plans_folder")().cast<std::string>();
            const MakePlan make = [](const std::string& name, int number) { return make_plan(name, number); };
            return std::make_shared<TunedObject>(TunedObject{TunedPlans::installed(
                of, {.ranks = ranks, .backend = backend, .device = device, .rank_order = rank_order}, make)});
          }),
          py::arg("ranks"), py::arg("backend") = "cpu", py::arg("device") = "", py::arg("rank_order") = false,
          py::arg("folder") = py::none())
      .def(
          "use",
          [](TunedObject& self, const PlanObject& plan, uint64_t least_bytes, uint64_t most_bytes,
             const std::optional<std::string>& packet) {
            self.plans.use({plan.plan, plan.plan->name, least_bytes, most_bytes, packet_of(packet)});
          },
          py::arg("plan"), py::arg("least_bytes") = 0, py::arg("most_bytes") = UINT64_MAX,
          py::arg("packet") = py::none(),
          "Adds a plan of your own, which is chosen before all others for messages of these bytes.\n\nRaises "
          "UsageError.")
      .def(
          "choose",
          [](const TunedObject& self, const std::string& collective, uint64_t bytes,
             const std::string& dtype) { return self.plans.choose(collective, bytes, dtype_of(dtype)); },
          py::arg("collective"), py::arg("bytes"), py::arg("dtype") = "f32",
          "Chooses a plan for a message.\n\nRaises UsageError.")
      .def("plan", &plan_of, py::arg("choice"),
           "Returns the plan of a choice. It reads or makes each plan once.")
      .def(
          "explain",
          [](const TunedObject& self, const std::string& collective, uint64_t bytes,
             const std::string& dtype) {
            std::vector<std::pair<std::string, std::string>> all;
            for (const TunedPlans::Passed& one : self.plans.explain(collective, bytes, dtype_of(dtype)))
              all.emplace_back(one.plan, one.reason);
            return all;
          },
          py::arg("collective"), py::arg("bytes"), py::arg("dtype") = "f32",
          "Returns the plans that choose() did not choose, as (plan, reason).");
}

}  // namespace

Config config_of(const Settings& settings) {
  if (settings.empty()) return Config::load();
  constexpr std::string_view prefix = "CHORALE_";
  std::vector<std::string> entries;
  for (char** entry = environ; entry && *entry; ++entry) {
    if (std::string_view(*entry).starts_with(prefix)) entries.emplace_back(*entry);
  }
  for (const auto& [key, value] : settings) {  // the last entry of a name counts
    std::string name(prefix);
    for (const char letter : key) name += char(std::toupper(static_cast<unsigned char>(letter)));
    entries.push_back(name + "=" + value);
  }
  std::vector<const char*> pointers;
  for (const std::string& entry : entries) pointers.push_back(entry.c_str());
  pointers.push_back(nullptr);
  const char* const ini = std::getenv("CHORALE_CONFIG");
  try {
    return Config::read(ini ? ini : "", pointers.data());
  } catch (const UsageError& error) {
    const std::string_view text = error.what();
    for (size_t at = entries.size() - settings.size(); at < entries.size(); ++at) {
      const std::string variable = entries[at].substr(0, entries[at].find('='));
      if (text.find(variable) != text.npos)
        throw UsageError(fmt::format("the keyword stands for the setting {}: {}", variable, text));
    }
    throw;
  }
}

void declare_executor(py::module_& module) {
  declare_world(module);
  declare_executors(module);
  declare_exchange(module);
  declare_tuned(module);
}

}  // namespace chorale::python
