#include "tools/doctor/examination.hpp"

#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "tools/version.hpp"

namespace chorale::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* words_of_verdicts[] = {"ok", "-", "FAIL"};
constexpr const char* keys_of_verdicts[] = {"ok", "note", "fail"};

}  // namespace

void Examination::row(Verdict verdict, const std::string& what, const std::string& found) {
  if (json_) {
    rows_.push_back({verdict, what, found, {}, {}});
    return;
  }
  // Rows are printed at once. So if an examination hangs or crashes, it is the one after the last row.
  std::cout << fmt::format("{:<6} {:<12}  {}\n", words_of_verdicts[size_t(verdict)], what, found)
            << std::flush;
}

void Examination::fail(const std::string& what, const std::string& found, const std::string& remedy) {
  row(Verdict::fail, what, found);
  if (json_) {
    rows_.back().remedy = remedy;
  } else {
    more("remedy: " + remedy);
  }
  well_ = false;
}

void Examination::more(const std::string& text) {
  if (json_) {
    rows_.back().more.push_back(text);
  } else {
    std::cout << std::string(21, ' ') << text << '\n' << std::flush;
  }
}

void Examination::end() const {
  if (!json_) {
    std::cout << (well_ ? "all is well\n" : "something is wrong: see FAIL above\n");
    return;
  }
  Json looks = Json::array();
  for (const Row& row : rows_) {
    Json look = {
        {"verdict", keys_of_verdicts[size_t(row.verdict)]}, {"what", row.what}, {"found", row.found}};
    if (!row.remedy.empty()) look["remedy"] = row.remedy;
    if (!row.more.empty()) look["more"] = row.more;
    looks.push_back(std::move(look));
  }
  // Texts of drivers and of the environment may not be valid UTF-8.
  std::cout << Json{{"chorale", CHORALE_VERSION}, {"well", well_}, {"looks", std::move(looks)}}.dump(
                   1, ' ', false, Json::error_handler_t::replace)
            << '\n';
}

std::string mebibytes(uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

}  // namespace chorale::tools
