#include "tools/view/picture.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <system_error>
#include <tuple>
#include <unordered_map>

#include "tools/view/column.hpp"

namespace chorale::tools {
namespace {

using Json = nlohmann::ordered_json;

/// Numbers texts in order of their first use.
class Names {
 public:
  uint32_t operator()(const std::string& name) {
    const auto [at, is_new] = numbers_.try_emplace(name, uint32_t(list_.size()));
    if (is_new) list_.push_back(name);
    return at->second;
  }
  const std::vector<std::string>& list() const { return list_; }

 private:
  std::unordered_map<std::string, uint32_t> numbers_;
  std::vector<std::string> list_;
};

/// Stands for a number in a text. Texts of operations differ in little else, so a page keeps each text
/// without its numbers only once.
constexpr char number_mark = '\x01';

/// Takes the numbers out of a text.
std::string without_numbers(const std::string& text, std::vector<uint64_t>& numbers) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const auto is_digit = [&](size_t k) { return k < text.size() && text[k] >= '0' && text[k] <= '9'; };
    size_t end = at;
    while (is_digit(end)) ++end;
    // A number of the page has at most 9 digits and begins with 0 only if it is 0.
    if (end == at || end - at > 9 || (text[at] == '0' && end - at > 1)) {
      end = std::max(end, at + 1);
      out.append(text, at, end - at);
    } else {
      uint64_t number = 0;
      std::from_chars(text.data() + at, text.data() + end, number);
      numbers.push_back(number);
      out += number_mark;
    }
    at = end;
  }
  return out;
}

Json times_json(const Picture& picture, const PictureTimes& times) {
  Column gaps, lengths;
  size_t number = 0;
  for (const PictureRow& row : picture.rows) {
    int64_t before = 0;
    for (size_t k = 0; k < row.ops.size(); ++k, ++number) {
      const PictureSpan span = number < times.spans.size() ? times.spans[number] : PictureSpan{};
      if (span.begin < 0) {
        lengths.add(0);
        continue;
      }
      lengths.add(uint64_t(std::max<int64_t>(span.end - span.begin, 0)) + 1);
      gaps.add_signed(span.begin - before);
      before = std::max(span.end, span.begin);
    }
  }
  return {{"title", times.title}, {"steps", times.steps}, {"gaps", gaps.text()}, {"lengths", lengths.text()}};
}

}  // namespace

uint64_t Picture::op_count() const {
  uint64_t all = 0;
  for (const PictureRow& row : rows) all += row.ops.size();
  return all;
}

PictureTimes order_of(const Picture& picture) {
  const size_t count = picture.op_count();
  std::vector<uint32_t> before(count), open(count);
  std::vector<std::vector<uint32_t>> after(count);
  std::vector<int64_t> slot(count, 0);
  size_t number = 0;
  for (const PictureRow& row : picture.rows) {
    for (size_t k = 0; k < row.ops.size(); ++k, ++number) {
      if (k) {
        after[number - 1].push_back(uint32_t(number));
        ++open[number];
      }
      for (const uint32_t other : row.ops[k].awaits) {
        if (other == number || other >= count) continue;
        after[other].push_back(uint32_t(number));
        ++open[number];
      }
    }
  }
  std::vector<uint32_t> ready;
  for (uint32_t op = 0; op < count; ++op)
    if (!open[op]) ready.push_back(op);
  std::vector<bool> placed(count);
  int64_t most = -1;
  for (size_t at = 0; at < ready.size(); ++at) {
    const uint32_t op = ready[at];
    placed[op] = true;
    most = std::max(most, slot[op]);
    for (const uint32_t next : after[op]) {
      slot[next] = std::max(slot[next], slot[op] + 1);
      if (!--open[next]) ready.push_back(next);
    }
  }
  PictureTimes times{"order of the operations", true, {}};
  times.spans.resize(count);
  number = 0;
  for (const PictureRow& row : picture.rows) {
    int64_t stuck = most + 1;
    for (size_t k = 0; k < row.ops.size(); ++k, ++number) {
      const int64_t at = placed[number] ? slot[number] : stuck++;
      times.spans[number] = {at, at + 1};
    }
  }
  return times;
}

std::string SourceTexts::operator()(const SourceLine& line) {
  namespace fs = std::filesystem;
  const auto [found, is_new] = files_.try_emplace(line.file);
  std::vector<std::string>& lines = found->second;
  if (is_new) {
    const fs::path name = line.file;
    for (const fs::path& path : {name, fs::path(beside_).parent_path() / name, fs::path(beside_)}) {
      std::error_code none;
      if (path.filename() != name.filename() || !fs::is_regular_file(path, none)) continue;
      std::ifstream file(path);
      for (std::string text; std::getline(file, text);) lines.push_back(text);
      break;
    }
  }
  return line.line && line.line <= lines.size() ? lines[line.line - 1] : "";
}

Json json_of(const Picture& picture) {
  Names lines, channels, templates;
  std::vector<std::string> names;
  std::vector<uint32_t> kinds, combining;
  // A schedule may both copy and call a function `copy`, which the page draws in another way.
  std::map<std::tuple<std::string, PictureKind, bool>, uint32_t> known_names;
  std::vector<SourceLine> line_list;
  Column name, line, channel, text, numbers, parts, awaits_count, awaits, access_count, accesses;
  Json rows = Json::array();
  std::vector<uint64_t> found;
  int64_t op_number = 0;
  for (const PictureRow& row : picture.rows) {
    rows.push_back({{"rank", row.rank}, {"name", row.name}, {"count", row.ops.size()}});
    for (const PictureOp& op : row.ops) {
      const auto [known, is_new] =
          known_names.try_emplace({op.name, op.kind, op.combines}, uint32_t(names.size()));
      if (is_new) {
        names.push_back(op.name);
        kinds.push_back(uint32_t(op.kind));
        combining.push_back(op.combines);
      }
      name.add(known->second);
      if (op.line.line) {
        const uint32_t at = lines(op.line.file + ":" + std::to_string(op.line.line));
        if (at == line_list.size()) line_list.push_back(op.line);
        line.add(at + 1);
      } else {
        line.add(0);
      }
      channel.add(op.channel.empty() ? 0 : channels(op.channel) + 1);
      found.clear();
      text.add(templates(without_numbers(op.text, found)));
      for (const uint64_t number : found) numbers.add(number);
      parts.add(op.parts);
      awaits_count.add(op.awaits.size());
      for (const uint32_t other : op.awaits) awaits.add_signed(int64_t(other) - op_number);
      access_count.add(op.accesses.size());
      for (const PictureAccess& access : op.accesses) {
        accesses.add(access.buffer * 2 + (access.writes ? 1 : 0));
        accesses.add(access.rank);
        accesses.add(access.index);
        accesses.add(access.size);
      }
      ++op_number;
    }
  }
  SourceTexts source(picture.file);
  std::vector<std::string> texts;
  for (const SourceLine& one : line_list) texts.push_back(source(one));
  Json times = Json::object();
  for (size_t at = 0; at < picture.times.size(); ++at)
    times[picture.tracks[at]] = times_json(picture, picture.times[at]);
  return {{"kind", picture.kind},
          {"name", picture.name},
          {"file", picture.file},
          {"headline", picture.headline},
          {"facts", picture.facts},
          {"notes", picture.notes},
          {"ranks", picture.ranks},
          {"chunkBytes", picture.chunk_bytes},
          {"chunks", picture.chunks},
          {"oneStorage", picture.one_storage},
          {"rows", std::move(rows)},
          {"names", names},
          {"kinds", kinds},
          {"combining", combining},
          {"lines", lines.list()},
          {"lineTexts", texts},
          {"channels", channels.list()},
          {"templates", templates.list()},
          {"columns",
           {{"name", name.text()},
            {"line", line.text()},
            {"channel", channel.text()},
            {"template", text.text()},
            {"numbers", numbers.text()},
            {"parts", parts.text()},
            {"awaitsCount", awaits_count.text()},
            {"awaits", awaits.text()},
            {"accessCount", access_count.text()},
            {"accesses", accesses.text()}}},
          {"times", std::move(times)},
          {"findings", picture.findings},
          {"profiles", picture.profiles},
          {"comparison", picture.comparison}};
}

}  // namespace chorale::tools
