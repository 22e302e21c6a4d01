// This file writes the text of an MSCCL algorithm, as msccl-tools does: every attribute of every step, and
// for the side of a step that is on another gpu the chunks that are accessed there.

#include <algorithm>
#include <concepts>
#include <string_view>

#include "connections.hpp"
#include "export.hpp"

namespace chorale::msccl {
namespace {

std::string in_attribute(std::string_view text) {
  std::string escaped;
  for (const char letter : text) {
    switch (letter) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        // XML turns other white space into spaces.
        escaped += uint8_t(letter) < ' ' ? "&#" + std::to_string(int(letter)) + ";" : std::string(1, letter);
    }
  }
  return escaped;
}

std::string attribute(std::string_view name, std::string_view value) {
  return " " + std::string(name) + "=\"" + in_attribute(value) + "\"";
}

template <std::integral Number>
std::string attribute(std::string_view name, Number value) {
  return attribute(name, std::string_view(std::to_string(value)));
}

std::string side(const std::string& name, const Region& region) {
  return attribute(name + "buf", buffer_letters[size_t(region.buffer)]) +
         attribute(name + "off", region.index);
}

std::string line(const AlgorithmStep& step, size_t number) {
  std::string text = "      <step" + attribute("s", number) + attribute("type", step.type->name);
  text += step.is("nop") ? " srcbuf=\"i\" srcoff=\"-1\" dstbuf=\"o\" dstoff=\"-1\""
                         : side("src", step.source) + side("dst", step.destination);
  const bool waits = !step.waits_for.empty();
  text += attribute("cnt", step.count) + attribute("depid", waits ? int64_t(step.waits_for[0].block) : -1) +
          attribute("deps", waits ? int64_t(step.waits_for[0].step) : -1);
  return text + attribute("hasdep", int(step.awaited.value_or(false))) + "/>\n";
}

/// Fills in the sides that are on other gpus.
void describe_other_sides(Algorithm& algorithm) {
  Diagnostics ignored;
  Findings findings("", ignored);
  for (const Connection& made : connect(algorithm, findings)) {
    for (const Message& message : made.messages) {
      AlgorithmStep& sent = algorithm.gpus[made.from].blocks[made.sender].steps[message.sent];
      AlgorithmStep& received = algorithm.gpus[made.to].blocks[made.receiver].steps[message.received];
      if (!sent.type->destination)
        sent.destination = received.type->destination ? received.destination : received.source;
      if (!received.type->source) received.source = sent.type->source ? sent.source : sent.destination;
    }
  }
}

}  // namespace

std::string write_algorithm(const Algorithm& of) {
  Algorithm algorithm = of;
  describe_other_sides(algorithm);
  uint32_t channels = 1;
  for (const AlgorithmGpu& gpu : algorithm.gpus) {
    for (const Block& block : gpu.blocks) channels = std::max(channels, block.channel + 1);
  }
  const bool any_size = algorithm.max_bytes > uint64_t(INT64_MAX);
  std::string text = "<algo" + attribute("name", algorithm.name) + attribute("proto", "Simple") +
                     attribute("nchannels", channels) +
                     attribute("nchunksperloop", std::max(algorithm.input, algorithm.output)) +
                     attribute("ngpus", algorithm.gpus.size()) + attribute("coll", algorithm.collective) +
                     attribute("inplace", int(algorithm.inplace)) +
                     attribute("outofplace", int(!algorithm.inplace)) +
                     attribute("minBytes", algorithm.min_bytes) +
                     attribute("maxBytes", any_size ? 0 : algorithm.max_bytes) + ">\n";
  for (size_t id = 0; id < algorithm.gpus.size(); ++id) {
    const AlgorithmGpu& gpu = algorithm.gpus[id];
    text += "  <gpu" + attribute("id", id) + attribute("i_chunks", algorithm.input) +
            attribute("o_chunks", algorithm.output) + attribute("s_chunks", gpu.scratch) + ">\n";
    for (size_t number = 0; number < gpu.blocks.size(); ++number) {
      const Block& block = gpu.blocks[number];
      text += "    <tb" + attribute("id", number) + attribute("send", block.send) +
              attribute("recv", block.receive) + attribute("chan", block.channel) + ">\n";
      for (size_t step = 0; step < block.steps.size(); ++step) text += line(block.steps[step], step);
      text += "    </tb>\n";
    }
    text += "  </gpu>\n";
  }
  return text + "</algo>\n";
}

}  // namespace chorale::msccl
