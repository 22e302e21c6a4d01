"""What the C++ that pages show takes for granted; documented.py puts it around.

By page, and by a word of the block: a source, in which SHOWN stands for the block; or DECLARED for its types, to the last of them, and CALLED for what is
behind these.
"""

# Beside those that the page shows.
HEADERS = {
    "fused-kernels.md": "#include <chorale/device.hpp>\n#include <chorale/launch_cpu.hpp>\n#include <chorale/tuner.hpp>\n"
                        "#include <tests/fused/expert_exchange.hpp>\n",
    "host-schedules.md": "#include <chorale/dsl.hpp>\nusing namespace chorale::dsl;\n",
    "simulation.md": "#include <chorale/json.hpp>\n#include <chorale/simulate.hpp>\n",
    "traces.md": "#include <chorale/comparison.hpp>\n#include <chorale/executor.hpp>\n#include <chorale/simulate.hpp>\n",
    "tuning.md": "#include <chorale/tuned_plans.hpp>\n",
}

GIVEN = {
    "README.md": {
        "World::join": """void shown() {
  const int rank = 0, ranks = 8;
  const uint64_t n = 0;
  float *x = nullptr, *y = nullptr;
SHOWN}
""",
        "TunedPlans": """void shown(chorale::Executor& executor) {
  const int ranks = 8;
  const uint64_t n = 0;
  float *x = nullptr, *y = nullptr;
SHOWN}
""",
        "Exchange": """void shown(chorale::World& world) {
  const uint64_t n = 1, m = 1;
  const int left = 0, right = 1;
  void *x = nullptr, *y = nullptr, *u = nullptr, *v = nullptr, *stream = nullptr;
SHOWN}
""",
        "ScheduleRun": """void shown(chorale::World& world) {
  const int64_t m = 1, k = 1, n = 1;
  void *a = nullptr, *b = nullptr, *c = nullptr, *stream = nullptr;
SHOWN}
""",
        "cudaSetDevice": """#include <cuda_runtime_api.h>
void shown(chorale::World& world, chorale::Config& config, chorale::Plan& plan, chorale::Arguments& arguments) {
  const int rank = 0;
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
SHOWN}
""",
        "survivors()": """void shown(std::optional<chorale::Executor>& executor, chorale::World& world, chorale::Config& config) {
  chorale::Plan plan;
SHOWN}
""",
    },
    "fused-kernels.md": {
        "direct_rendezvous": """void shown(chorale::World& world) {
  float *x = nullptr, *y = nullptr;
  const uint64_t n = 0;
SHOWN}
""",
        "struct MaxConsume": """DECLARED
void shown(chorale::World& world, std::unique_ptr<chorale::Transport>& transport) {
  float* y = nullptr;
  const uint64_t n = 0;
CALLED}
""",
        "struct TransposeAllToAll": """DECLARED
void shown(std::unique_ptr<chorale::Transport>& transport) {
  const float* in = nullptr;
  float* out = nullptr;
  const uint32_t rows = 1, cols = 1;
CALLED}
""",
        "chorale::TileIn tile": """template <class T>
struct Shown {
  mutable float squares = 0;
  mutable T* own = nullptr;
  const T* sum = nullptr;
  uint32_t cols = 0;
SHOWN};
""",
        "QuantizeFp8Blocks": """template <class T>
chorale::Stop shown(const chorale::Group& group, const chorale::Deadline& deadline, chorale::EndpointTable table, const T* in, T* out,
                    uint64_t elements) {
  using Block = chorale::Fp8Block<>;
SHOWN}
template chorale::Stop shown<float>(const chorale::Group&, const chorale::Deadline&, chorale::EndpointTable, const float*, float*, uint64_t);
""",
        "struct DispatchTokens": """namespace shown {
SHOWN
template struct DispatchTokens<float>;
}
""",
        "TuneTable": """void shown() {
  const uint64_t n = 0;
SHOWN}
""",
    },
    "host-schedules.md": {
        "schedule.token()": """void shown(Schedule& schedule, Lane& comm, Lane& comp) {
  const Index ranks = schedule.ranks();
SHOWN}
""",
    },
    "hosts.md": {
        "World::join": """void shown() {
  const int rank = 0, ranks = 8;
  const uint64_t n = 0;
  float *x = nullptr, *y = nullptr;
SHOWN}
""",
    },
    "simulation.md": {
        "Simulator": """void shown(const chorale::Plan& plan) {
SHOWN}
""",
    },
    "traces.md": {
        "config.trace": """void use(uint32_t rank, uint32_t block, std::string_view name, const chorale::SourceLine& line, uint64_t begin_ns, uint64_t end_ns);
void shown(chorale::World& world, chorale::Config& config) {
SHOWN}
""",
        "load_machine": """void use(const chorale::SourceLine& line, std::string_view name, double gap_ns);
void shown(const chorale::Plan& plan, const std::vector<chorale::TraceSpan>& spans_of_all_ranks) {
  const uint64_t bytes = 0;
SHOWN}
""",
    },
    "tuning.md": {
        "rank_order": """void shown(chorale::TuneTable table, int ranks, const std::string& gpu) {
SHOWN}
""",
    },
}
