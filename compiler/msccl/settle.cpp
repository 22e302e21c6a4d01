// This file decides what an MSCCL file leaves out, and to which buffers its chunks belong. The decisions are
// proved afterwards, so a wrong one causes a finding and never a wrong plan.

#include <algorithm>
#include <array>

#include "algorithm.hpp"
#include "chorale/collective.hpp"

namespace chorale::msccl {
namespace {

bool sends(const AlgorithmStep& step) { return step.type->sends; }
bool receives(const AlgorithmStep& step) { return step.type->receives; }
bool reduces(const AlgorithmStep& step) { return step.type->reduces; }

class Settling {
 public:
  Settling(Algorithm& algorithm, Findings& findings) : algorithm_(algorithm), findings_(findings) {}

  void run() {
    scratch_behind_output();
    use();
    collective();
    if (!findings_.empty()) return;
    place();
    sizes();
    if (!findings_.empty()) return;
    result();
    for (AlgorithmGpu& gpu : algorithm_.gpus) bounds(gpu);
  }

 private:
  /// Says how far the steps of all gpus reach into each buffer, and whether they read and write it.
  struct Use {
    uint64_t end = 0;
    bool read = false, written = false;
  };

  template <class Visit>
  void steps(Visit visit) {
    for (AlgorithmGpu& gpu : algorithm_.gpus) {
      for (Block& block : gpu.blocks) {
        for (AlgorithmStep& step : block.steps) visit(gpu, step);
      }
    }
  }

  /// Moves scratch out of the output, because older runtimes kept their scratch at the end of it. If a gpu
  /// names no chunk of its scratch, but some past the end of its output, these are its scratch.
  void scratch_behind_output() {
    for (AlgorithmGpu& gpu : algorithm_.gpus) {
      if (!gpu.said_scratch.value_or(0) || !gpu.output) continue;
      std::vector<Region*> behind;
      bool named = false;
      for (Block& block : gpu.blocks) {
        for (AlgorithmStep& step : block.steps) {
          for (Region* region : {&step.source, &step.destination}) {
            named = named || (region->size && region->buffer == BufferKind::scratch);
            if (region->size && region->buffer == BufferKind::output && region->index >= *gpu.output)
              behind.push_back(region);
          }
        }
      }
      if (named) continue;
      for (Region* region : behind)
        *region = {BufferKind::scratch, region->index - *gpu.output, region->size};
    }
  }

  void use() {
    for (const AlgorithmGpu& gpu : algorithm_.gpus) {
      input_ = std::max(input_, gpu.input.value_or(0));
      output_ = std::max(output_, gpu.output.value_or(0));
    }
    steps([&](AlgorithmGpu&, const AlgorithmStep& step) {
      const auto add = [&](const Region& region, bool read, bool written) {
        Use& use = use_[size_t(region.buffer)];
        use.end = std::max(use.end, region.index + region.size);
        use.read = use.read || read;
        use.written = use.written || written;
      };
      if (step.type->source) add(step.source, true, false);
      if (step.type->destination) add(step.destination, step.is("re"), true);
    });
    if (!input_) input_ = use_[size_t(BufferKind::input)].end;
    if (!output_) output_ = use_[size_t(BufferKind::output)].end;
  }

  void collective() {
    std::string& word = algorithm_.collective;
    const std::string sizes =
        "inputs of " + counted(input_, "chunk") + " and outputs of " + counted(output_, "chunk");
    if (word.empty()) {
      word = inferred();
      if (word.empty()) {
        findings_.add(algorithm_.line, "<algo> has no attribute 'coll', and no collective has " + sizes,
                      "say which one it is, or coll=\"custom\" if it is none that MSCCL knows");
        return;
      }
      algorithm_.assumed.push_back("the file has no coll; its steps, " + sizes + " make it " + word);
    }
    if (collective_info(word).holds != CollectiveInfo::Holds::unknown) return;
    findings_.unread(algorithm_.line, "coll is '" + word + "', which the import does not read",
                     "with coll=\"custom\" races and deadlocks are still proved to be absent, but no result");
  }

  /// Returns the collective that matches the sizes and the steps; "" if none does.
  std::string inferred() const {
    const uint64_t ranks = algorithm_.gpus.size();
    const bool equal = input_ == output_ || !input_ || !output_;
    bool sums = false;
    for (const AlgorithmGpu& gpu : algorithm_.gpus) {
      for (const Block& block : gpu.blocks)
        sums = sums || std::any_of(block.steps.begin(), block.steps.end(), reduces);
    }
    // A root of sums sends nothing, and any other root receives nothing.
    const bool has_root = ranks > 1 && without(sums ? sends : receives).size() == 1;
    for (const CollectiveInfo& row : collective_table) {
      if (!row.is_standard() || row.leaves_sender_open() || row.reduces() != sums) continue;
      if (row.input_is_part()    ? input_ * ranks == output_ || !input_
          : row.output_is_part() ? !equal && input_ == output_ * ranks
                                 : equal && row.has_root() == has_root)
        return std::string(row.word);
    }
    return "";
  }

  /// Decides whether the algorithm is in place. The file may say so. Otherwise it is in place if steps and
  /// copies use only one of the two buffers.
  void place() {
    if (algorithm_.said_inplace || algorithm_.said_outofplace) {
      algorithm_.inplace = algorithm_.said_inplace.value_or(!algorithm_.said_outofplace.value_or(true));
      return;
    }
    const bool copied = std::any_of(algorithm_.gpus.begin(), algorithm_.gpus.end(),
                                    [](const AlgorithmGpu& gpu) { return !gpu.copies.empty(); });
    const Use &in = use_[size_t(BufferKind::input)], &out = use_[size_t(BufferKind::output)];
    algorithm_.inplace = !copied && ((in.written && !out.written) || (out.read && !in.read));
    algorithm_.assumed.push_back(
        std::string("the file has neither inplace nor outofplace; its steps make it ") +
        (algorithm_.inplace ? "in place" : "out of place"));
  }

  /// Sets the numbers of chunks of each gpu. nchunksperloop counts the chunks of its larger buffer.
  void sizes() {
    const std::string& word = algorithm_.collective;
    const uint64_t ranks = algorithm_.gpus.size();
    const CollectiveInfo& collective = collective_info(word);
    const bool gathers = collective.input_is_part(), scatters = collective.output_is_part();
    const uint64_t chunks = algorithm_.said_chunks.value_or(
        std::max(gathers ? input_ * ranks : input_, scatters ? output_ * ranks : output_));
    if (!chunks) {
      findings_.add(algorithm_.line, "<algo> has no attribute 'nchunksperloop', and no step has chunks");
      return;
    }
    if (collective.has_free_sizes()) {
      algorithm_.input = input_ || output_ ? input_ : chunks;
      algorithm_.output = input_ || output_ ? output_ : chunks;
      return;
    }
    algorithm_.input = gathers ? chunks / ranks : chunks;
    algorithm_.output = scatters ? chunks / ranks : chunks;
    if (collective.input_parts(ranks) * collective.output_parts(ranks) == 1 || chunks % ranks == 0) return;
    findings_.add(algorithm_.line, "nchunksperloop is " + std::to_string(chunks) + ", but " + word +
                                       " with " + counted(ranks, "gpu") + " cuts its chunks in " +
                                       std::to_string(ranks) + " equal parts");
  }

  /// Describes the result in the terms of plans.
  void result() {
    const CollectiveInfo& collective = collective_info(algorithm_.collective);
    if (collective.only_root_sends()) root(receives, "receive");
    if (!collective.only_root_receives()) return;
    root(sends, "send");
    // A sum at one gpu becomes a custom collective, whose result is written out.
    algorithm_.collective = "custom";
    algorithm_.post.assign(algorithm_.gpus.size(), {{}});
    for (uint32_t id = 0; id < algorithm_.gpus.size(); ++id)
      algorithm_.post[algorithm_.root][0].push_back({id, 0});
  }

  /// Checks that no step or copy reaches past the end of a buffer.
  void bounds(AlgorithmGpu& gpu) {
    uint64_t used = 0;
    for (const Block& block : gpu.blocks) {
      for (const AlgorithmStep& step : block.steps) {
        for (const Region& region : {step.source, step.destination})
          if (region.buffer == BufferKind::scratch) used = std::max(used, region.index + region.size);
      }
    }
    gpu.scratch = gpu.said_scratch.value_or(used);
    const uint64_t input = std::min(gpu.input.value_or(algorithm_.input), algorithm_.input),
                   output = std::min(gpu.output.value_or(algorithm_.output), algorithm_.output);
    for (const Block& block : gpu.blocks) {
      for (const AlgorithmStep& step : block.steps) {
        if (step.type->source) region(step.source, step, "src", {input, output, gpu.scratch});
        if (step.type->destination) region(step.destination, step, "dst", {input, output, gpu.scratch});
      }
    }
    for (const InitialCopy& copy : gpu.copies) {
      const bool from = copy.from >= input;
      if (from || copy.to >= output) {
        findings_.add(copy.line, std::string(from ? "i_off is " : "o_off is ") +
                                     std::to_string(from ? copy.from : copy.to) + ", but the " +
                                     (from ? "input" : "output") + " of the gpu has " +
                                     counted(from ? input : output, "chunk"));
      }
    }
  }

  void region(const Region& region, const AlgorithmStep& step, const char* side,
              const std::array<uint64_t, 3>& chunks) {
    const uint64_t end = region.index + region.size, all = chunks[size_t(region.buffer)];
    if (end <= all) return;
    findings_.add(step.line, std::string(side) + "off " + std::to_string(region.index) + " and cnt " +
                                 std::to_string(region.size) + " end at chunk " + std::to_string(end) +
                                 ", but the " + std::string(buffer_names[size_t(region.buffer)]) +
                                 " of the gpu has " + counted(all, "chunk"));
  }

  /// Returns the gpus that have no step of this kind.
  std::vector<uint32_t> without(bool (*kind)(const AlgorithmStep&)) const {
    std::vector<uint32_t> found;
    for (uint32_t id = 0; id < algorithm_.gpus.size(); ++id) {
      const std::vector<Block>& blocks = algorithm_.gpus[id].blocks;
      if (std::none_of(blocks.begin(), blocks.end(), [&](const Block& block) {
            return std::any_of(block.steps.begin(), block.steps.end(), kind);
          }))
        found.push_back(id);
    }
    return found;
  }

  /// Sets the root to the only gpu without such steps. Reports it if there is not exactly one.
  void root(bool (*kind)(const AlgorithmStep&), const std::string& verb) {
    const std::vector<uint32_t> found = without(kind);
    if (found.size() == 1) {
      algorithm_.root = found[0];
      return;
    }
    findings_.unread(
        algorithm_.line,
        "the root of this " + algorithm_.collective + " cannot be determined: " +
            (found.empty() ? "every gpu " + verb + "s something"
                           : gpu_name(found[0]) + " and " + gpu_name(found[1]) + " " + verb + " nothing"),
        "the import takes the only gpu that " + verb + "s nothing for the root");
  }

  Algorithm& algorithm_;
  Findings& findings_;
  std::array<Use, 3> use_;           // by BufferKind
  uint64_t input_ = 0, output_ = 0;  // the largest i_chunks and o_chunks
};

}  // namespace

void settle(Algorithm& algorithm, Findings& findings) { Settling(algorithm, findings).run(); }

}  // namespace chorale::msccl
