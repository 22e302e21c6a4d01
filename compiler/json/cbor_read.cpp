// This file reads CBOR into the same tree as JSON.

#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cbor.hpp"
#include "chorale/plan_error.hpp"

namespace chorale::json::cbor {
namespace {

/// Says where an item is, as far as this matters for skipping ranks.
enum class Where : uint8_t { plan, gpus, gpu, blocks, elsewhere };

class Parser {
 public:
  Parser(std::string_view bytes, size_t origin, std::optional<uint32_t> rank)
      : bytes_(bytes), origin_(origin), rank_(rank) {}

  Value plan() {
    if (at_ + 3 <= bytes_.size() && bytes_.substr(at_, 3) == "\xd9\xd9\xf7") at_ += 3;
    return whole(0, Where::plan);
  }

  /// Reads one item, which must be all of the bytes.
  Value whole(size_t depth, Where where) {
    Value value;
    item(value, depth, where, 0);
    if (at_ != bytes_.size()) fail("the end of the plan");
    return value;
  }

 private:
  struct Head {
    Major major;
    uint8_t code;  ///< the lowest five bits of the byte
    uint64_t argument;
  };
  static constexpr uint8_t indefinite = 31;

  [[noreturn]] void fail(const std::string& expected) const { refuse(at_, expected); }
  [[noreturn]] void refuse(size_t at, const std::string& expected) const {
    const std::string found =
        at < bytes_.size() ? "the byte " + std::to_string(uint8_t(bytes_[at])) : std::string("the end");
    throw PlanError("byte " + std::to_string(origin_ + at),
                    "this is not CBOR: found " + found + ", expected " + expected);
  }

  uint64_t big_endian(size_t count) {
    if (count > bytes_.size() - at_) refuse(bytes_.size(), std::to_string(count) + " bytes of a number");
    uint64_t value = 0;
    for (; count > 0; --count) value = value << 8 | uint8_t(bytes_[at_++]);
    return value;
  }

  Head head() {
    if (at_ == bytes_.size()) fail("an item");
    const auto first = uint8_t(bytes_[at_]);
    Head found{Major(first >> 5), uint8_t(first & 31), uint64_t(first & 31)};
    if (found.code > 27 && found.code != indefinite) fail("an item");
    ++at_;
    if (found.code >= 24 && found.code <= 27) found.argument = big_endian(size_t(1) << (found.code - 24));
    return found;
  }

  bool ends() {
    if (at_ == bytes_.size()) fail("an item or the end of a list");
    if (uint8_t(bytes_[at_]) != end) return false;
    ++at_;
    return true;
  }

  std::string_view stretch(const Head& head, const char* what) {
    if (head.code == indefinite) refuse(at_ - 1, std::string(what) + " in one piece");
    if (head.argument > bytes_.size() - at_)
      refuse(bytes_.size(), std::to_string(head.argument) + " bytes of " + what);
    const std::string_view found = bytes_.substr(at_, head.argument);
    at_ += found.size();
    return found;
  }

  void text(std::string& out, const Head& head, const char* what) {
    const size_t start = at_;
    out = stretch(head, what);
    for (const char c : out) {
      if (uint8_t(c) < 0x80) continue;
      try {
        nlohmann::json(out).dump();  // throws unless it is UTF-8
        return;
      } catch (const nlohmann::json::exception&) {
        refuse(start, std::string(what) + " in UTF-8");
      }
    }
  }

  void item(Value& value, size_t depth, Where where, size_t index) {
    const size_t start = at_;
    const Head found = head();
    switch (found.major) {
      case Major::number:
      case Major::negative:
        if (found.code == indefinite) refuse(start, "an item");
        value.kind = found.major == Major::number ? Value::Kind::number : Value::Kind::other_number;
        value.number = found.argument;
        if (found.major == Major::negative) value.text = negative(found.argument);
        return;
      case Major::bytes:
        refuse(start, "an item that JSON has");
      case Major::text:
        value.kind = Value::Kind::string;
        return text(value.text, found, "a string");
      case Major::list:
        return list(value, found, start, depth, where);
      case Major::map:
        return map(value, found, start, depth, where, index);
      case Major::tag:
        if (found.argument == embedded_item && where == Where::blocks) return embedded(value, depth, index);
        if (found.argument == embedded_json) return digits(value);
        refuse(start, "no tag but 24 around thread blocks and 262 around digits");
      case Major::other:
        return other(value, found, start);
    }
  }

  void list(Value& value, const Head& found, size_t start, size_t depth, Where where) {
    deeper(start, depth);
    value.kind = Value::Kind::array;
    const Where inside = where == Where::gpus ? Where::gpu : Where::elsewhere;
    for (size_t k = 0; found.code == indefinite ? !ends() : k < found.argument; ++k)
      item(value.add(), depth + 1, inside, k);
  }

  void map(Value& value, const Head& found, size_t start, size_t depth, Where where, size_t index) {
    deeper(start, depth);
    value.kind = Value::Kind::object;
    for (size_t k = 0; found.code == indefinite ? !ends() : k < found.argument; ++k) {
      const size_t at = at_;
      const Head key = head();
      if (key.major != Major::text) refuse(at, "a key that is a string");
      text(value.add_key(), key, "a key");
      Value& inner = value.add();
      if (where == Where::plan && value.keys.back() == gpus_key) {
        item(inner, depth + 1, Where::gpus, 0);
      } else if (where == Where::gpu && value.keys.back() == embedded_key) {
        item(inner, depth + 1, Where::blocks, index);
      } else {
        item(inner, depth + 1, Where::elsewhere, 0);
      }
    }
    if (const std::string* twice = repeated(value.keys))
      throw PlanError("byte " + std::to_string(origin_ + start), twice_in_one_object(*twice));
  }

  void embedded(Value& value, size_t depth, size_t index) {
    const size_t start = at_;
    const Head found = head();
    if (found.major != Major::bytes) refuse(start, "a byte string");
    const std::string_view inside = stretch(found, "a byte string");
    if (rank_ && *rank_ != index) {
      value.kind = Value::Kind::array;
      return;
    }
    Parser nested(inside, origin_ + size_t(inside.data() - bytes_.data()), rank_);
    value = nested.whole(depth, Where::elsewhere);
  }

  void digits(Value& value) {
    const size_t start = at_;
    const Head found = head();
    if (found.major != Major::bytes) refuse(start, "a byte string");
    const std::string_view inside = stretch(found, "a byte string");
    try {
      value = json::parse(inside);
    } catch (const PlanError&) {
      refuse(start, "the digits of a number");
    }
    if (value.kind != Value::Kind::number && value.kind != Value::Kind::other_number)
      refuse(start, "the digits of a number");
  }

  void other(Value& value, const Head& found, size_t start) {
    switch (found.code) {
      case 20:
      case 21:
        value.kind = Value::Kind::boolean;
        value.boolean = found.code == 21;
        return;
      case 22:
        value.kind = Value::Kind::null;
        return;
      case 26:
        return real(value, double(std::bit_cast<float>(uint32_t(found.argument))), start);
      case 27:
        return real(value, std::bit_cast<double>(found.argument), start);
      default:
        refuse(start, "an item that JSON has");
    }
  }

  void real(Value& value, double number, size_t start) {
    if (!std::isfinite(number)) refuse(start, "a finite number");
    value.kind = Value::Kind::other_number;
    value.text = digits_of(number);
  }

  /// Returns the digits of -1 - `argument`.
  static std::string negative(uint64_t argument) {
    return argument == UINT64_MAX ? "-18446744073709551616" : "-" + std::to_string(argument + 1);
  }

  void deeper(size_t start, size_t depth) const {
    if (depth < max_depth) return;
    throw PlanError("byte " + std::to_string(origin_ + start), too_deep());
  }

  std::string_view bytes_;
  size_t origin_;  // position of bytes_ in the whole input
  size_t at_ = 0;
  std::optional<uint32_t> rank_;
};

}  // namespace

std::string digits_of(double number) { return nlohmann::json(number).dump(); }

Value parse(std::string_view bytes, std::optional<uint32_t> rank) { return Parser(bytes, 0, rank).plan(); }

}  // namespace chorale::json::cbor
