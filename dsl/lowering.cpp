// This file declares the choices of a lowering as parameters of a program.

#include <algorithm>
#include <span>
#include <stdexcept>

#include "chorale/did_you_mean.hpp"
#include "chorale/dsl/registry.hpp"
#include "chorale/dsl/schedule.hpp"
#include "dsl/recording.hpp"

namespace chorale::dsl {
namespace {

size_t choice(Parameters& with, std::string_view name, std::span<const std::string_view> words,
              size_t otherwise, std::string_view what) {
  std::string description{what};
  for (const std::string_view word : words)
    description += (word == words[0] ? ": " : ", ") + std::string(word);
  const std::string word = with(name, std::string(words[otherwise]), description);
  const auto known = std::find(words.begin(), words.end(), word);
  if (known == words.end())
    throw std::invalid_argument(say("parameter '", name, "' is '", word, "', but must be one of ",
                                    description.substr(what.size() + 2), did_you_mean(word, words)));
  return size_t(known - words.begin());
}

}  // namespace

Lowering lowering(Parameters& with, Lowering defaults) {
  constexpr std::string_view orders[] = {"automatic", "linear", "rotated", "ring"};
  Lowering made;
  const size_t order =
      choice(with, "order", orders, defaults.order ? 1 + size_t(*defaults.order) : 0, "order of the slices");
  if (order) made.order = Order(order - 1);
  made.form =
      Form(choice(with, "form", schedule::form_names, size_t(defaults.form), "form of the transfers"));
  made.style = StreamStyle(
      choice(with, "style", schedule::stream_style_names, size_t(defaults.style), "style of the streams"));
  made.reshard = Reshard(choice(with, "reshard", schedule::reshard_names, size_t(defaults.reshard),
                                "where an operand is made whole"));
  made.via = schedule::Mover(
      choice(with, "via", schedule::mover_names, size_t(defaults.via), "mover of the transfers"));
  return made;
}

}  // namespace chorale::dsl
