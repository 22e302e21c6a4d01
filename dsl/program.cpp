#include "chorale/dsl/program.hpp"

#include <exception>
#include <utility>

#include "dsl/recording.hpp"

namespace chorale::dsl {

Program::Program(ProgramOptions options, Here at)
    : recording_(std::make_unique<Recording>(std::move(options), at)) {}
Program::Program(Plan plan, Diagnostics findings)
    : recording_(std::make_unique<Recording>(std::move(plan), std::move(findings))) {}
Program::Program(Program&&) noexcept = default;
Program::~Program() = default;

Program& Program::operator=(Program&& other) noexcept {
  if (this == &other) return *this;
  std::unique_ptr<Recording> old = std::exchange(recording_, std::move(other.recording_));
  if (old && recording_) recording_->replace(std::move(old));
  return *this;
}

const std::string& Program::name() const { return Recording::of(*this).plan().name; }
int64_t Program::num_ranks() const { return int64_t(Recording::of(*this).plan().gpus.size()); }
Diagnostics Program::diagnostics() const { return Recording::of(*this).findings(); }
Plan Program::recorded() const { return Recording::of(*this).finished(); }
CompileOptions Program::compile_options() const { return Recording::of(*this).compile_options(); }

Compiled Program::compile(const CompileOptions& options) const& {
  Compiled compiled{recorded(), diagnostics()};
  if (compiled.ok()) compiled.diagnostics = chorale::compile(compiled.plan, options);
  return compiled;
}

Compiled Program::compile(const CompileOptions& options) && {
  Compiled compiled{{}, diagnostics()};
  compiled.plan = std::move(Recording::of(*this)).finished();
  recording_.reset();
  if (compiled.ok()) compiled.diagnostics = chorale::compile(compiled.plan, options);
  return compiled;
}

uint64_t Program::recorded_ops() const {
  uint64_t ops = 0;
  for (const Gpu& gpu : Recording::of(*this).plan().gpus) {
    for (const ThreadBlock& block : gpu.threadblocks) ops += block.ops.size();
  }
  return ops;
}

LoopIterationContext::LoopIterationContext(Program& program, int64_t unit_bytes, int64_t num_chunks, Here at)
    : recording_(&Recording::of(program)), exceptions_(std::uncaught_exceptions()) {
  recording_->open_loop(unit_bytes, num_chunks, at);
}

LoopIterationContext::~LoopIterationContext() {
  recording_->close_loop(std::uncaught_exceptions() == exceptions_);
}

}  // namespace chorale::dsl
