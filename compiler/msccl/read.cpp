// From the text of an MSCCL file to what it says.

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <pugixml.hpp>
#include <type_traits>

#include "algorithm.hpp"
#include "element.hpp"

namespace chorale::msccl {
namespace {

/// Chunks of a buffer, and of the gpus of an algorithm: as many as other plan readers can hold.
constexpr int64_t most_chunks = int64_t{1} << 32;
constexpr int64_t most_gpus = 65536;

/// The words of the two sides for what both can do.
struct Collective {
  std::string_view word, name;
};
constexpr Collective collectives[] = {
    {"allreduce", "allreduce"},          {"allgather", "allgather"}, {"reducescatter", "reducescatter"},
    {"reduce_scatter", "reducescatter"}, {"alltoall", "alltoall"},   {"broadcast", "broadcast"},
};

bool is_utf8(const char* text) {
  try {
    nlohmann::json(text).dump();
    return true;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

/// Reads the elements of one file.
class Reader {
 public:
  Reader(Algorithm& algorithm, Findings& findings) : algorithm_(algorithm), findings_(findings) {}

  void algo(const Element&);

 private:
  void root(const Element&);
  void sizes(const Element&, uint64_t chunks, uint64_t ranks);
  void gpus(const Element&, int64_t expected);
  void gpu(const Element&, uint32_t id);
  void block(const Element&, Block&, uint32_t gpu);
  void steps(const Element&, Block&);
  void step(const Element&, const Block&, Step&);
  Region region(const Element&, const std::string& side, uint64_t count) const;

  /// Elements in the order of their ids, which are 0 to their number less one; empty if they are not.
  std::vector<const Element*> by_id(const std::vector<Element>&, const std::string& whose) const;

  Algorithm& algorithm_;
  Findings& findings_;
  uint64_t chunks_[3] = {0, 0, 0};  // of the gpu that is read, by BufferKind
};

void Reader::algo(const Element& element) {
  algorithm_.line = element.line();
  if (const char* const name = element.text("name", true)) {
    algorithm_.name = name;
    if (!is_utf8(name)) element.find("name is " + quoted(name) + ", expected text in UTF-8");
  }
  constexpr std::string_view protocols[] = {"Simple", "LL", "LL128"};
  element.choice("proto", protocols);
  std::string_view words[std::size(collectives)];
  for (size_t k = 0; k < std::size(collectives); ++k) words[k] = collectives[k].word;
  const std::optional<size_t> collective = element.choice("coll", words);
  if (collective) algorithm_.collective = collectives[*collective].name;
  algorithm_.inplace = element.number("inplace", 0, 1).value_or(0) == 1;
  const int64_t least = element.number("minBytes", 0, INT64_MAX, 0).value_or(0);
  const int64_t most = element.number("maxBytes", -1, INT64_MAX, 0).value_or(0);
  algorithm_.min_bytes = uint64_t(least);
  if (most > 0) algorithm_.max_bytes = uint64_t(most);
  if (algorithm_.min_bytes > algorithm_.max_bytes)
    element.find("minBytes is " + std::to_string(least) + ", but maxBytes " + std::to_string(most));
  const std::optional<int64_t> ranks = element.number("ngpus", 1, most_gpus);
  const std::optional<int64_t> chunks = element.number("nchunksperloop", 1, most_chunks);
  if (collective && ranks && chunks) sizes(element, uint64_t(*chunks), uint64_t(*ranks));
  // Without them every step would be found to be past the end.
  if (findings_.empty()) gpus(element, *ranks);
  if (findings_.empty() && algorithm_.collective == "broadcast") root(element);
}

/// The file does not say who the root is, but who receives nothing must have the data.
void Reader::root(const Element& element) {
  std::vector<uint32_t> sources;
  for (uint32_t id = 0; id < algorithm_.gpus.size(); ++id) {
    const std::vector<Block>& blocks = algorithm_.gpus[id].blocks;
    const auto receives = [](const Block& block) {
      return std::any_of(block.steps.begin(), block.steps.end(),
                         [](const Step& step) { return step.type->receives; });
    };
    if (std::none_of(blocks.begin(), blocks.end(), receives)) sources.push_back(id);
  }
  if (sources.size() == 1) {
    algorithm_.root = sources[0];
    return;
  }
  element.find("of a broadcast one gpu receives nothing, its root, but here " +
               (sources.empty()
                    ? "all receive"
                    : gpu_name(sources[0]) + " and " + gpu_name(sources[1]) + " receive nothing"));
}

/// The chunks of each gpu: nchunksperloop are those of the larger of its buffers.
void Reader::sizes(const Element& element, uint64_t chunks, uint64_t ranks) {
  algorithm_.input = algorithm_.output = chunks;
  if (algorithm_.collective == "allgather") algorithm_.input = chunks / ranks;
  if (algorithm_.collective == "reducescatter") algorithm_.output = chunks / ranks;
  const bool whole = algorithm_.collective == "allreduce" || algorithm_.collective == "broadcast";
  if (whole || chunks % ranks == 0) return;
  element.find("nchunksperloop is " + std::to_string(chunks) + ", but " + algorithm_.collective + " with " +
               counted(ranks, "gpu") + " cuts its chunks in " + std::to_string(ranks) + " equal parts");
}

std::vector<const Element*> Reader::by_id(const std::vector<Element>& elements,
                                          const std::string& whose) const {
  std::vector<const Element*> ordered(elements.size(), nullptr);
  bool complete = true;
  for (const Element& element : elements) {
    const std::optional<int64_t> id = element.number("id", 0, int64_t(elements.size()) - 1);
    if (id && ordered[size_t(*id)]) {
      findings_.add(element.line(),
                    "<" + element.name() + "> has id " + std::to_string(*id) + ", as another one of " + whose,
                    {}, {findings_.note(ordered[size_t(*id)]->line(), "the other one is here")});
    } else if (id) {
      ordered[size_t(*id)] = &element;
      continue;
    }
    complete = false;
  }
  if (!complete) ordered.clear();
  return ordered;
}

void Reader::gpus(const Element& element, int64_t expected) {
  const std::vector<Element> elements = element.children("gpu");
  if (int64_t(elements.size()) != expected) {
    element.find("ngpus is " + std::to_string(expected) + ", but there are " +
                 counted(elements.size(), "<gpu> element"));
    return;
  }
  const std::vector<const Element*> ordered = by_id(elements, "the algorithm");
  algorithm_.gpus.resize(ordered.size());
  for (uint32_t id = 0; id < ordered.size(); ++id) gpu(*ordered[id], id);
}

void Reader::gpu(const Element& element, uint32_t id) {
  AlgorithmGpu& gpu = algorithm_.gpus[id];
  gpu.line = element.line();
  // Where a size is wrong, every step is within it: one finding is enough.
  const auto size = [&](const char* attribute) {
    return uint64_t(element.number(attribute, 0, most_chunks).value_or(2 * most_chunks));
  };
  const uint64_t input = size("i_chunks"), output = size("o_chunks");
  gpu.scratch = size("s_chunks");
  // What a file calls a buffer's size is how much of it the steps use; how large it is the collective says.
  chunks_[0] = std::min(input, algorithm_.input);
  chunks_[1] = std::min(output, algorithm_.output);
  chunks_[2] = gpu.scratch;
  const std::vector<Element> elements = element.children("tb");
  const std::vector<const Element*> ordered = by_id(elements, gpu_name(id));
  gpu.blocks.resize(ordered.size());
  for (size_t block_id = 0; block_id < ordered.size(); ++block_id)
    block(*ordered[block_id], gpu.blocks[block_id], id);
}

void Reader::block(const Element& element, Block& block, uint32_t gpu) {
  block.line = element.line();
  const int64_t last = int64_t(algorithm_.gpus.size()) - 1;
  const auto peer = [&](const char* side) {
    const int64_t id = element.number(side, -1, last).value_or(-1);
    if (id == int64_t(gpu))
      element.find(std::string(side) + " is " + std::to_string(id) + ", the gpu itself, expected another one",
                   "cpy copies within a gpu");
    return id;
  };
  block.send = peer("send");
  block.receive = peer("recv");
  const bool connected = block.send >= 0 || block.receive >= 0;
  block.channel =
      uint32_t(std::max<int64_t>(element.number("chan", connected ? 0 : -1, UINT32_MAX).value_or(0), 0));
  steps(element, block);
}

void Reader::steps(const Element& element, Block& block) {
  for (const Element& child : element.children("step")) {
    const int64_t position = int64_t(block.steps.size());
    Step& step = block.steps.emplace_back();
    step.line = child.line();
    child.no_children();
    const std::optional<int64_t> number = child.number("s", 0, INT32_MAX);
    if (number && *number != position)
      child.find("s is " + std::to_string(*number) + ", expected " + std::to_string(position) +
                     ", the step's position in its thread block",
                 "deps counts steps by it");
    this->step(child, block, step);
  }
}

void Reader::step(const Element& element, const Block& block, Step& step) {
  std::string_view names[std::size(step_types)];
  for (size_t k = 0; k < std::size(step_types); ++k) names[k] = step_types[k].name;
  const std::optional<size_t> type = element.choice("type", names);
  const int64_t depends = element.number("depid", -1, INT32_MAX).value_or(-1);
  const int64_t on_step = element.number("deps", depends < 0 ? INT32_MIN : 0, INT32_MAX).value_or(0);
  if (depends >= 0) step.waits_for = StepRef{uint32_t(depends), uint32_t(on_step)};
  step.awaited = element.number("hasdep", 0, 1).value_or(0) == 1;
  step.type = &step_types[type.value_or(std::size(step_types) - 1)];
  if (!step.type->source && !step.type->destination) return;
  step.count = uint64_t(element.number("cnt", 1, most_chunks).value_or(0));
  if (step.type->source) step.source = region(element, "src", step.count);
  if (step.type->destination) step.destination = region(element, "dst", step.count);
  const auto has_peer = [&](bool needed, int64_t peer, const char* attribute) {
    if (needed && peer < 0)
      element.find("'" + std::string(step.type->name) + "' needs a peer, but its thread block has " +
                   attribute + "=\"-1\"");
  };
  has_peer(step.type->sends, block.send, "send");
  has_peer(step.type->receives, block.receive, "recv");
}

Region Reader::region(const Element& element, const std::string& side, uint64_t count) const {
  const std::optional<size_t> buffer = element.choice((side + "buf").c_str(), buffer_letters);
  const std::optional<int64_t> offset = element.number((side + "off").c_str(), 0, most_chunks);
  if (!buffer || !offset) return {};
  const uint64_t chunks = chunks_[*buffer];
  if (uint64_t(*offset) + count > chunks) {
    element.find(side + "off " + std::to_string(*offset) + " and cnt " + std::to_string(count) +
                 " end at chunk " + std::to_string(uint64_t(*offset) + count) + ", but the " +
                 std::string(buffer_names[*buffer]) + " of the gpu has " + counted(chunks, "chunk"));
  }
  return {BufferKind(*buffer), uint64_t(*offset), count};
}

}  // namespace

std::string gpu_name(uint64_t gpu) { return "gpu " + std::to_string(gpu); }

std::string block_name(uint64_t gpu, uint64_t block) {
  return "thread block " + std::to_string(block) + " of " + gpu_name(gpu);
}

Algorithm read_algorithm(std::string_view xml, Findings& findings) {
  Algorithm algorithm;
  const Lines lines(xml);
  if (const size_t zero = xml.find('\0'); zero != xml.npos) {
    findings.add(lines.at(zero), "a byte of value 0, expected text");
    return algorithm;
  }
  pugi::xml_document document;
  const pugi::xml_parse_result result = document.load_buffer(
      xml.data(), xml.size(), pugi::parse_default | pugi::parse_trim_pcdata, pugi::encoding_utf8);
  if (!result) {
    std::string why = result.description();
    if (!why.empty()) why[0] = char(std::tolower(static_cast<unsigned char>(why[0])));
    findings.add(lines.at(size_t(std::max<ptrdiff_t>(result.offset, 0))), "this is no XML: " + why);
    return algorithm;
  }
  std::vector<pugi::xml_node> roots(document.begin(), document.end());
  if (roots.size() != 1 || std::string_view(roots[0].name()) != "algo") {
    const pugi::xml_node wrong = roots[roots.size() > 1 && std::string_view(roots[0].name()) == "algo"];
    findings.add(lines.at(size_t(std::max<ptrdiff_t>(wrong.offset_debug(), 0))),
                 "an element " + quoted(wrong.name()) + " at the top, expected one <algo>");
    return algorithm;
  }
  Reader(algorithm, findings).algo(Element(roots[0], lines, findings));
  return algorithm;
}

}  // namespace chorale::msccl
