// This file parses JSON into a tree through nlohmann's event interface, and writes the tree.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "chorale/json_text.hpp"
#include "chorale/plan_error.hpp"
#include "json.hpp"

namespace chorale::json {
namespace {

/// Builds a Value from nlohmann's events. If a callback returns false, the parse ends and `message` says why.
class Builder {
 public:
  Value root;
  std::string message;
  size_t position = 0;  ///< for a syntax error: number of bytes read

  /// Returns the path of the innermost open list or object, or of the item in it that is being read.
  std::string path() const {
    std::string text;
    for (const Value* value : open_) {
      const bool inner = value != open_.back();
      if (value->kind == Value::Kind::array) {
        // Only a value that is itself open has been appended already.
        text += "/" + std::to_string(value->items.size() - inner);
      } else if (!value->keys.empty() && (inner || value->keys.size() > value->items.size())) {
        text += "/" + value->keys.back().substr(0, most_of_a_key);
      }
    }
    return text.empty() ? "/" : text;
  }

  bool null() { return leaf(Value::Kind::null); }
  bool boolean(bool value) {
    if (!leaf(Value::Kind::boolean)) return false;
    last_->boolean = value;
    return true;
  }
  bool number_unsigned(uint64_t value) {
    if (!leaf(Value::Kind::number)) return false;
    last_->number = value;
    return true;
  }
  bool number_integer(int64_t value) {
    if (value == 0) return number_unsigned(0);  // "-0"
    if (!leaf(Value::Kind::other_number)) return false;
    last_->text = std::to_string(value);
    return true;
  }
  bool number_float(double, const std::string& digits) {
    if (!leaf(Value::Kind::other_number)) return false;
    last_->text = digits;
    return true;
  }
  bool string(std::string& text) {
    if (!leaf(Value::Kind::string)) return false;
    last_->text = std::move(text);
    return true;
  }
  bool binary(nlohmann::json::binary_t&) { return false; }  // no JSON text has binary data
  bool start_object(size_t) { return open(Value::Kind::object); }
  bool start_array(size_t) { return open(Value::Kind::array); }
  bool end_array() { return close(); }
  bool key(std::string& text) {
    open_.back()->add_key() = std::move(text);
    return true;
  }
  bool end_object() { return no_repeats(*open_.back()) && close(); }
  bool parse_error(size_t at, const std::string&, const nlohmann::json::exception& error) {
    position = at;
    message = error.what();
    return false;
  }

 private:
  bool leaf(Value::Kind kind) {
    if (open_.empty()) {
      last_ = &root;
    } else {
      // An open value never moves: its parent gets no further item before it is closed.
      last_ = &open_.back()->add();
    }
    last_->kind = kind;
    return true;
  }
  bool open(Value::Kind kind) {
    if (open_.size() == max_depth) {
      message = too_deep();
      return false;
    }
    leaf(kind);
    open_.push_back(last_);
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }
  bool no_repeats(const Value& object) {
    const std::string* twice = repeated(object.keys);
    if (!twice) return true;
    message = twice_in_one_object(*twice);
    return false;
  }

  std::vector<Value*> open_;
  Value* last_ = nullptr;
};

/// Returns the place of the byte at `position`, such as "line 3, column 7".
std::string place(std::string_view text, size_t position) {
  const std::string_view before = text.substr(0, std::min(position ? position - 1 : 0, text.size()));
  const size_t line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t start = before.rfind('\n');
  const size_t column = 1 + before.size() - (start == before.npos ? 0 : start + 1);
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

/// Returns the last part of nlohmann's "[json.exception.parse_error.101] parse error at line 1, column 2:
/// <what>". Other errors have no place in their text.
std::string what(const std::string& message) {
  for (const std::string_view end : {": ", "] "}) {
    const size_t head = message.find(end);
    if (head != message.npos) return message.substr(head + end.size());
  }
  return message;
}

}  // namespace

const Value* Value::find(std::string_view key) const {
  for (size_t k = 0; k < keys.size(); ++k) {
    if (keys[k] == key) return &items[k];
  }
  return nullptr;
}

const std::string* repeated(const std::vector<std::string>& keys) {
  if (keys.size() < 16) {
    for (auto key = keys.begin(); key != keys.end(); ++key) {
      if (std::find(keys.begin(), key, *key) != key) return &*key;
    }
    return nullptr;
  }
  std::vector<const std::string*> sorted;
  for (const std::string& key : keys) sorted.push_back(&key);
  const auto less = [](const std::string* left, const std::string* right) { return *left < *right; };
  const auto equal = [](const std::string* left, const std::string* right) { return *left == *right; };
  std::sort(sorted.begin(), sorted.end(), less);
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end(), equal);
  return twice == sorted.end() ? nullptr : *twice;
}

Value parse(std::string_view text) {
  Builder builder;
  // nlohmann treats a zero byte as the end and would not read what follows it.
  if (const size_t zero = text.find('\0'); zero != text.npos)
    throw PlanError(builder.path(), place(text, zero + 1) + " is not JSON: it is a byte of zero");
  if (nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) return std::move(builder.root);
  const std::string path = builder.path();
  if (!builder.position) throw PlanError(path, builder.message);
  throw PlanError(path, place(text, builder.position) + " is not JSON: " + what(builder.message));
}

void dump(std::string& out, const Value& value) {
  switch (value.kind) {
    case Value::Kind::null:
      out += "null";
      break;
    case Value::Kind::boolean:
      out += value.boolean ? "true" : "false";
      break;
    case Value::Kind::number:
      append(out, value.number);
      break;
    case Value::Kind::other_number:
      out += value.text;
      break;
    case Value::Kind::string:
      quote(out, value.text);
      break;
    case Value::Kind::array:
    case Value::Kind::object: {
      const bool object = value.kind == Value::Kind::object;
      out += object ? '{' : '[';
      for (size_t k = 0; k < value.items.size(); ++k) {
        if (k) out += ',';
        if (object) {
          quote(out, value.keys[k]);
          out += ':';
        }
        dump(out, value.items[k]);
      }
      out += object ? '}' : ']';
    }
  }
}

void quote(std::string& out, std::string_view text) {
  const bool plain = std::all_of(text.begin(), text.end(),
                                 [](char c) { return c >= ' ' && c < 127 && c != '"' && c != '\\'; });
  if (plain) {
    put(out, "\"", text, "\"");
    return;
  }
  out += json_text(nlohmann::json(text));
}

}  // namespace chorale::json
