// This file reads the text of an MSCCL file into an Algorithm.

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <pugixml.hpp>

#include "algorithm.hpp"
#include "chorale/limits.hpp"
#include "element.hpp"

namespace chorale::msccl {
namespace {

constexpr int64_t most_chunks = int64_t(max_chunks);
constexpr int64_t most_gpus = max_ranks;

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

  void algo(const Element& element) {
    algorithm_.line = element.line();
    const char* const name = element.text("name", false);
    algorithm_.name = name ? name : "msccl";
    if (!is_utf8(algorithm_.name.c_str()))
      element.find("name is " + in_quotes(std::string_view(algorithm_.name)) + ", expected text in UTF-8");
    constexpr std::string_view protocols[] = {"Simple", "LL", "LL128"};
    element.choice("proto", protocols, 0);
    collective(element);
    const auto flag = [&](const char* attribute) -> std::optional<bool> {
      const std::optional<int64_t> value = element.number_if_there(attribute, 0, 1);
      return value ? std::optional(*value == 1) : std::nullopt;
    };
    algorithm_.said_inplace = flag("inplace");
    algorithm_.said_outofplace = flag("outofplace");
    message_sizes(element);
    const std::optional<int64_t> ranks = element.number_if_there("ngpus", 1, most_gpus);
    const std::optional<int64_t> chunks = element.number_if_there("nchunksperloop", 1, most_chunks);
    if (chunks) algorithm_.said_chunks = uint64_t(*chunks);
    const auto elements = int64_t(element.count("gpu"));
    if (!findings_.empty()) return;
    if (ranks && elements != *ranks) {
      element.find("ngpus is " + std::to_string(*ranks) + ", but there are " +
                   counted(size_t(elements), "<gpu> element"));
    } else if (elements < 1 || elements > most_gpus) {
      element.find("there are " + counted(size_t(elements), "<gpu> element") + ", expected 1 to " +
                   std::to_string(most_gpus));
    } else {
      gpus(element);
    }
  }

 private:
  void collective(const Element& element) {
    const std::optional<size_t> found = element.choice("coll", collective_words, std::size(collective_words));
    if (found && *found < std::size(collective_words)) algorithm_.collective = collective_words[*found];
  }

  void message_sizes(const Element& element) {
    const int64_t least = element.number("minBytes", 0, INT64_MAX, 0).value_or(0);
    const int64_t most = element.number("maxBytes", -1, INT64_MAX, 0).value_or(0);
    algorithm_.min_bytes = uint64_t(least);
    if (most > 0) algorithm_.max_bytes = uint64_t(most);
    if (algorithm_.min_bytes > algorithm_.max_bytes)
      element.find("minBytes is " + std::to_string(least) + ", but maxBytes " + std::to_string(most));
  }

  void gpus(const Element& element) {
    const std::vector<Element> elements = element.children("gpu");
    const std::vector<const Element*> ordered = by_id(elements, "the algorithm");
    algorithm_.gpus.resize(ordered.size());
    for (uint32_t id = 0; id < ordered.size(); ++id) gpu(*ordered[id], id);
  }

  void gpu(const Element& element, uint32_t id) {
    AlgorithmGpu& gpu = algorithm_.gpus[id];
    gpu.line = element.line();
    const auto size = [&](const char* attribute, std::optional<uint64_t>& chunks) {
      if (const std::optional<int64_t> said = element.number_if_there(attribute, 0, most_chunks))
        chunks = uint64_t(*said);
    };
    size("i_chunks", gpu.input);
    size("o_chunks", gpu.output);
    size("s_chunks", gpu.said_scratch);
    const auto [elements, copied] = element.children("tb", "copy");
    copies(copied, gpu);
    const std::vector<const Element*> ordered = by_id(elements, gpu_name(id));
    gpu.blocks.resize(ordered.size());
    for (size_t block_id = 0; block_id < ordered.size(); ++block_id)
      block(*ordered[block_id], gpu.blocks[block_id], id);
    // If a file lacks hasdep, the reader must find out which steps others wait for.
    for (size_t block_id = 0; block_id < gpu.blocks.size(); ++block_id) {
      for (const AlgorithmStep& step : gpu.blocks[block_id].steps) {
        for (const auto& [other, wanted] : step.waits_for) {
          if (other == block_id || other >= gpu.blocks.size() || wanted >= gpu.blocks[other].steps.size())
            continue;
          AlgorithmStep& before = gpu.blocks[other].steps[wanted];
          if (!before.awaited) before.awaited = true;
        }
      }
    }
  }

  void copies(const std::vector<Element>& elements, AlgorithmGpu& gpu) {
    for (const Element& element : elements) {
      element.no_children();
      const std::optional<int64_t> from = element.number("i_off", 0, most_chunks),
                                   to = element.number("o_off", 0, most_chunks);
      if (from && to) gpu.copies.push_back({uint64_t(*from), uint64_t(*to), element.line()});
    }
  }

  void block(const Element& element, Block& block, uint32_t gpu) {
    block.line = element.line();
    const int64_t last = int64_t(algorithm_.gpus.size()) - 1;
    const auto peer = [&](const char* side) {
      const int64_t id = element.number(side, -1, last, -1).value_or(-1);
      if (id == int64_t(gpu))
        element.find(
            std::string(side) + " is " + std::to_string(id) + ", the gpu itself, expected another one",
            "cpy copies within a gpu");
      return id;
    };
    block.send = peer("send");
    block.receive = peer("recv");
    const bool connected = block.send >= 0 || block.receive >= 0;
    block.channel =
        uint32_t(std::max<int64_t>(element.number("chan", connected ? 0 : -1, UINT32_MAX, 0).value_or(0), 0));
    steps(element, block);
  }

  void steps(const Element& element, Block& block) {
    for (const Element& child : element.children("step")) {
      const int64_t position = int64_t(block.steps.size());
      AlgorithmStep& step = block.steps.emplace_back();
      step.line = child.line();
      child.no_children();
      const std::optional<int64_t> number = child.number("s", 0, INT32_MAX, position);
      if (number && *number != position)
        child.find("s is " + std::to_string(*number) + ", expected " + std::to_string(position) +
                       ", the step's position in its thread block",
                   "deps counts steps by it");
      this->step(child, block, step);
    }
  }

  void step(const Element& element, const Block& block, AlgorithmStep& step) {
    std::string_view names[std::size(step_types)];
    for (size_t k = 0; k < std::size(step_types); ++k) names[k] = step_types[k].name;
    const std::optional<size_t> type = element.choice("type", names);
    dependency(element, step);
    step.type = &step_types[type.value_or(std::size(step_types) - 1)];
    if (!step.type->source && !step.type->destination) return;
    step.count = uint64_t(element.number("cnt", 1, most_chunks, 1).value_or(0));
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

  /// Reads depid, deps and hasdep. If one of the first two is below zero, the step waits for no other.
  void dependency(const Element& element, AlgorithmStep& step) {
    const std::optional<int64_t> block = element.number("depid", -1, INT32_MAX, -1);
    const std::optional<int64_t> number = element.number("deps", INT32_MIN, INT32_MAX, -1);
    if (block && number && *block >= 0 && *number >= 0)
      step.waits_for.push_back({uint32_t(*block), uint32_t(*number)});
    if (const std::optional<int64_t> told = element.number_if_there("hasdep", 0, 1))
      step.awaited = *told == 1;
  }

  Region region(const Element& element, const std::string& side, uint64_t count) const {
    const std::optional<size_t> buffer = element.choice((side + "buf").c_str(), buffer_letters);
    const std::optional<int64_t> offset = element.number((side + "off").c_str(), 0, most_chunks);
    if (!buffer || !offset) return {};
    return {BufferKind(*buffer), uint64_t(*offset), count};
  }

  /// Returns elements in the order of their ids, which must be 0 to their number - 1; empty if they are not.
  std::vector<const Element*> by_id(const std::vector<Element>& elements, const std::string& whose) const {
    std::vector<const Element*> ordered(elements.size(), nullptr);
    bool complete = true;
    for (const Element& element : elements) {
      const std::optional<int64_t> id = element.number("id", 0, int64_t(elements.size()) - 1);
      if (id && ordered[size_t(*id)]) {
        findings_.add(
            element.line(),
            "<" + element.name() + "> has id " + std::to_string(*id) + ", as another one of " + whose, {},
            {findings_.note(ordered[size_t(*id)]->line(), "the other one is here")});
      } else if (id) {
        ordered[size_t(*id)] = &element;
        continue;
      }
      complete = false;
    }
    if (!complete) ordered.clear();
    return ordered;
  }

  Algorithm& algorithm_;
  Findings& findings_;
};

}  // namespace

std::string gpu_name(uint64_t gpu) { return "gpu " + std::to_string(gpu); }

std::string block_name(uint64_t gpu, uint64_t block) {
  return "thread block " + std::to_string(block) + " of " + gpu_name(gpu);
}

Algorithm read_algorithm(std::string_view xml, Findings& findings) {
  Algorithm algorithm;
  const Lines lines(xml);
  if (const size_t zero = xml.find('\0'); zero != xml.npos) {
    findings.add(lines.at(zero), "a byte of value 0, expected text in UTF-8",
                 zero < 4 ? "text in UTF-16 has such bytes: save the file as UTF-8" : "");
    return algorithm;
  }
  pugi::xml_document document;
  const pugi::xml_parse_result result = document.load_buffer(
      xml.data(), xml.size(), pugi::parse_default | pugi::parse_trim_pcdata, pugi::encoding_utf8);
  if (!result) {
    std::string why = result.description();
    if (!why.empty()) why[0] = char(std::tolower(static_cast<unsigned char>(why[0])));
    findings.add(lines.at(size_t(std::max<ptrdiff_t>(result.offset, 0))), "this is not XML: " + why);
    return algorithm;
  }
  std::vector<pugi::xml_node> roots(document.begin(), document.end());
  if (roots.size() != 1 || std::string_view(roots[0].name()) != "algo") {
    const pugi::xml_node wrong = roots[roots.size() > 1 && std::string_view(roots[0].name()) == "algo"];
    findings.add(
        lines.at(size_t(std::max<ptrdiff_t>(wrong.offset_debug(), 0))),
        "the file contains an element " + in_quotes(wrong.name()) + " at the top, expected one <algo>");
    return algorithm;
  }
  Reader(algorithm, findings).algo(Element(roots[0], lines, findings));
  return algorithm;
}

}  // namespace chorale::msccl
