// This file shares no code with goal_write.cpp, so that a test which reads what was written checks both.

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "chorale/interchange.hpp"
#include "chorale/limits.hpp"
#include "chorale/usage_error.hpp"

namespace chorale {
namespace {

class GoalReader {
 public:
  explicit GoalReader(std::string_view text) : text_(text) {}

  MessageGraph run() {
    while (next_line()) {
      if (word().empty()) continue;
      if (take("num_ranks")) {
        const auto ranks = number<uint32_t>("a number of ranks");
        expect(ranks <= max_ranks, "at most " + std::to_string(max_ranks) + " ranks before this");
        graph_.ranks.resize(ranks);
      } else if (take("rank")) {
        begin_rank();
      } else if (take("}")) {
        expect(rank_ >= 0, "a rank before this");
        rank_ = -1;
      } else {
        expect(rank_ >= 0, "'num_ranks' or 'rank'");
        operation();
      }
      expect(word().empty(), "the end of the line");
    }
    expect(rank_ < 0, "'}'");
    return std::move(graph_);
  }

 private:
  [[noreturn]] void fail(const std::string& expected) {
    word();
    throw UsageError("GOAL, line " + std::to_string(line_number_) + ": expected " + expected +
                     (line_.empty() ? ", but the line ends" : ", but it is '" + std::string(line_) + "'"));
  }
  void expect(bool holds, const std::string& expected) {
    if (!holds) fail(expected);
  }

  /// Moves to the next line, without its comment.
  bool next_line() {
    if (text_.empty()) return false;
    const size_t end = std::min(text_.find('\n'), text_.size());
    line_ = text_.substr(0, end);
    text_.remove_prefix(std::min(end + 1, text_.size()));
    ++line_number_;
    line_ = line_.substr(0, line_.find("//"));
    return true;
  }

  /// Returns the next letters, digits and underscores, or one other character; "" at the end of the line.
  std::string_view word() {
    const size_t begin = line_.find_first_not_of(" \t\r");
    line_.remove_prefix(std::min(begin, line_.size()));
    size_t end = 0;
    const auto letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    while (end < line_.size() && letter(line_[end])) ++end;
    return line_.substr(0, std::max<size_t>(end, line_.empty() ? 0 : 1));
  }

  bool take(std::string_view wanted) {
    if (word() != wanted) return false;
    line_.remove_prefix(wanted.size());
    return true;
  }

  template <class Number>
  Number number(const std::string& expected) {
    word();
    Number value = 0;
    const auto [end, error] = std::from_chars(line_.data(), line_.data() + line_.size(), value);
    expect(error == std::errc(), expected);
    line_.remove_prefix(size_t(end - line_.data()));
    return value;
  }

  void begin_rank() {
    expect(rank_ < 0, "'}' before the next rank");
    rank_ = number<uint32_t>("a rank");
    expect(size_t(rank_) < graph_.ranks.size(), "a rank below num_ranks");
    expect(take("{"), "'{'");
    labels_.clear();
  }

  std::vector<GraphNode>& nodes() { return graph_.ranks[size_t(rank_)]; }

  uint32_t labelled(const std::string& label) {
    const auto found = labels_.find(label);
    expect(found != labels_.end(), "a label that was defined before '" + label + "'");
    return found->second;
  }

  void operation() {
    GraphNode node;
    if (!kind(node)) {
      const std::string label(word());
      line_.remove_prefix(label.size());
      if (take("requires")) {
        const std::string before(word());
        line_.remove_prefix(before.size());
        std::vector<uint32_t>& after = nodes()[labelled(label)].after;
        after.push_back(labelled(before));
        std::sort(after.begin(), after.end());
        return;
      }
      expect(take(":"), "':' or 'requires'");
      expect(labels_.emplace(label, uint32_t(nodes().size())).second, "a label that is not in use");
      expect(kind(node), "'send', 'recv' or 'calc'");
    }
    if (node.kind == GraphNode::Kind::work) {
      node.ns = number<uint64_t>("a time");
    } else {
      node.bytes = number<uint64_t>("a size");
      expect(take("b"), "'b'");
      expect(take(node.kind == GraphNode::Kind::send ? "to" : "from"), "'to' or 'from'");
      node.peer = number<uint32_t>("a rank");
      expect(node.peer < graph_.ranks.size(), "a rank below num_ranks before this");
      if (take("tag")) node.tag = number<uint32_t>("a tag");
    }
    if (take("cpu")) node.block = number<uint32_t>("a cpu");
    nodes().push_back(std::move(node));
  }

  bool kind(GraphNode& node) {
    node.kind = GraphNode::Kind::send;
    if (take("send")) return true;
    node.kind = GraphNode::Kind::receive;
    if (take("recv")) return true;
    node.kind = GraphNode::Kind::work;
    return take("calc");
  }

  std::string_view text_, line_;
  size_t line_number_ = 0;
  MessageGraph graph_;
  int64_t rank_ = -1;  // the current one; -1: none
  std::map<std::string, uint32_t> labels_;
};

}  // namespace

MessageGraph read_goal(std::string_view text) { return GoalReader(text).run(); }

}  // namespace chorale
