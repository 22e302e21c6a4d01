#include "tools/view/page.hpp"

#include <cstddef>
#include <string_view>
#include <utility>

#include "chorale/json_text.hpp"
#include "tools/view/bundle.hpp"

namespace chorale::tools {
namespace {

/// Stands in the bundle where the data belong.
constexpr std::string_view data_mark = "@CHORALE_DATA@";

/// Returns JSON that may stand within an HTML script. "</script>" and "<!--" would end or change it, and both
/// begin with '<', which JSON may write as an escape.
std::string in_script(const std::string& json) {
  std::string out;
  out.reserve(json.size());
  for (const char letter : json) {
    if (letter == '<')
      out += "\\u003c";
    else
      out += letter;
  }
  return out;
}

}  // namespace

std::string page_of(const std::vector<Picture>& pictures) {
  nlohmann::ordered_json views = nlohmann::ordered_json::array();
  for (const Picture& picture : pictures) views.push_back(json_of(picture));
  const nlohmann::ordered_json all{{"version", 1}, {"made", CHORALE_VERSION}, {"views", std::move(views)}};
  const std::string_view bundle = viewer_bundle();
  const size_t mark = bundle.find(data_mark);
  std::string page(bundle.substr(0, mark));
  page += in_script(json_text(all));
  page += bundle.substr(mark + data_mark.size());
  return page;
}

}  // namespace chorale::tools
