// This file writes plans as CBOR (RFC 8949). It writes the tree of the JSON text, with the thread blocks of
// each rank as a byte string, so that a reader can skip the other ranks.

#include <bit>
#include <ios>
#include <nlohmann/json.hpp>
#include <ostream>

#include "chorale/json.hpp"
#include "compiler/json/cbor.hpp"
#include "compiler/json/json.hpp"

namespace chorale {
namespace json::cbor {
namespace {

void head(std::string& out, Major major, uint64_t argument) {
  const auto first = char(uint8_t(major) << 5);
  const auto bytes = [&](uint8_t code, int count) {
    out += char(first | code);
    while (count-- > 0) out += char(argument >> (8 * count));
  };
  if (argument < 24)
    out += char(first | char(argument));
  else if (argument <= UINT8_MAX)
    bytes(24, 1);
  else if (argument <= UINT16_MAX)
    bytes(25, 2);
  else if (argument <= UINT32_MAX)
    bytes(26, 4);
  else
    bytes(27, 8);
}

/// Writes what nlohmann's parser reads. Lists and maps have indefinite length, because the text does not say
/// their length in advance.
class Transcoder {
 public:
  /// \param gpu  the text is a GPU's, whose thread blocks are embedded; elsewhere the key has no special
  ///   meaning
  Transcoder(std::string& out, bool gpu) : out_(out), gpu_(gpu) {}

  bool null() { return simple(0xf6); }
  bool boolean(bool value) { return simple(value ? 0xf5 : 0xf4); }
  bool number_unsigned(uint64_t value) {
    head(out_, Major::number, value);
    return closed();
  }
  bool number_integer(int64_t value) {
    head(out_, value < 0 ? Major::negative : Major::number, value < 0 ? ~uint64_t(value) : uint64_t(value));
    return closed();
  }
  bool number_float(double value, const std::string& digits) {
    if (digits != digits_of(value)) {
      head(out_, Major::tag, embedded_json);
      head(out_, Major::bytes, digits.size());
      out_ += digits;
      return closed();
    }
    const auto bits = std::bit_cast<uint64_t>(value);
    out_ += char(0xfb);
    for (int shift = 56; shift >= 0; shift -= 8) out_ += char(bits >> shift);
    return closed();
  }
  bool string(std::string& text) {
    head(out_, Major::text, text.size());
    out_ += text;
    return closed();
  }
  bool binary(nlohmann::json::binary_t&) { return false; }
  bool start_object(size_t) { return open(0xbf); }
  bool start_array(size_t) { return open(0x9f); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& text) {
    head(out_, Major::text, text.size());
    out_ += text;
    if (gpu_ && depth_ == 1 && text == embedded_key) embedded_ = out_.size();
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::json::exception&) { return false; }

 private:
  bool simple(uint8_t byte) {
    out_ += char(byte);
    return closed();
  }
  bool open(uint8_t byte) {
    out_ += char(byte);
    ++depth_;
    return true;
  }
  bool close() {
    out_ += char(end);
    --depth_;
    return closed();
  }
  /// Ends a value, and wraps it if it belongs to the embedded key.
  bool closed() {
    if (depth_ != 1 || embedded_ == 0) return true;
    std::string wrap;
    head(wrap, Major::tag, embedded_item);
    head(wrap, Major::bytes, out_.size() - embedded_);
    out_.insert(embedded_, wrap);
    embedded_ = 0;
    return true;
  }

  std::string& out_;
  const bool gpu_;
  int depth_ = 0;
  size_t embedded_ = 0;  // start of the value to wrap; 0: none
};

void transcode(std::string& out, const std::string& json, bool gpu) {
  Transcoder transcoder(out, gpu);
  nlohmann::json::sax_parse(json, &transcoder);
}

}  // namespace
}  // namespace json::cbor

void write_cbor(const Plan& plan, std::ostream& out) {
  using namespace json::cbor;
  const auto send = [&](const std::string& bytes) { out.write(bytes.data(), std::streamsize(bytes.size())); };
  std::string rest;
  transcode(rest, json::text_without_gpus(plan), false);
  std::string bytes;
  head(bytes, Major::tag, self_described);
  bytes += rest.front();  // the map begins
  head(bytes, Major::text, gpus_key.size());
  bytes += gpus_key;
  bytes += char(begin_list);
  send(bytes);
  for (const Gpu& gpu : plan.gpus) {
    bytes.clear();
    transcode(bytes, json::text_of(plan, gpu), true);
    send(bytes);
  }
  bytes.assign(1, char(end));
  send(bytes);
  out.write(rest.data() + 1, std::streamsize(rest.size() - 1));
}

}  // namespace chorale
