#pragma once
/// \file
/// The registry finds programs by name and passes them parameters. `chorale compile mine.cpp --set ranks=8`
/// builds such a program.

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chorale/dsl/program.hpp"

namespace chorale::dsl {

/// Holds the least and the greatest value of a whole-number parameter, and its old name if it was renamed.
struct Bounds {
  int64_t min = std::numeric_limits<int64_t>::min();
  int64_t max = std::numeric_limits<int64_t>::max();
  std::string_view was = {};  ///< the parameter's name in the last version, which settings may still use
};

/// Describes a parameter that a program has declared.
struct Parameter {
  std::string name;
  std::string type;  ///< "integer", "boolean" or "text"
  std::string default_value, description;
  Bounds bounds;
};

/// Holds the settings of one build and the parameters that the program declares. For example, a program
/// declares a parameter and gets its value in this way:
///
///   const int ranks = with("ranks", 8, "number of GPUs", {.min = 2, .max = 1024});
class Parameters {
 public:
  using Settings = std::map<std::string, std::string, std::less<>>;  ///< values by name of the parameter

  explicit Parameters(Settings settings = {}) : settings_(std::move(settings)) {}

  /// Declares a parameter with its default, and returns its value: the setting if there is one, else the
  /// default.
  /// \throws std::invalid_argument if the setting has another type or is out of bounds

  int operator()(std::string_view name, int default_value, std::string_view description, Bounds = {});
  int64_t operator()(std::string_view name, int64_t default_value, std::string_view description, Bounds = {});
  uint64_t operator()(std::string_view name, uint64_t default_value, std::string_view description,
                      Bounds = {});
  bool operator()(std::string_view name, bool default_value, std::string_view description);
  std::string operator()(std::string_view name, const char* default_value, std::string_view description);
  std::string operator()(std::string_view name, const std::string& default_value,
                         std::string_view description);

  /// Sets the sentence that lists of programs show.
  void summary(std::string_view text) { summary_ = text; }

  const std::string& summary() const { return summary_; }
  const std::vector<Parameter>& declared() const { return declared_; }
  /// Throws if a setting names no declared parameter.
  /// \param program  the name of the program in the message
  /// \throws std::invalid_argument naming the setting
  void refuse_unknown(std::string_view program = "the program") const;

 private:
  const std::string* setting(Parameter);
  template <class Number>
  Number whole_number(std::string_view name, Number default_value, std::string_view description, Bounds);

  Settings settings_;
  std::vector<Parameter> declared_;
  std::string summary_;
};

/// Declares the parameters `format` and `block`, and returns the codec that they name.
/// \throws std::invalid_argument if there is no such format, or if no codec has such a block
Codec codec_of(Parameters&);

/// Builds a program from its parameters. CHORALE_PROGRAM defines such a function.
using Factory = Program (*)(Parameters&);

/// Holds the name of a program and the place of its CHORALE_PROGRAM.
struct RegisteredProgram {
  std::string name, file;  ///< file: without folders
  uint32_t line = 0;
};

/// Describes a program as `chorale list` shows it.
struct Description {
  std::string name, summary, file;
  uint32_t line = 0;
  std::vector<Parameter> parameters;
};

/// Returns every program of this process, by name. Programs of shared objects count while they are loaded.
std::vector<RegisteredProgram> programs();

/// Returns the parameters of a program. It builds the program with its defaults to find them.
/// \throws std::invalid_argument as build() does for the name
Description describe(std::string_view name);

/// Builds a program. If several have this name, the one that was loaded last is built.
/// \throws std::invalid_argument if there is no such program, if its file has two of that name, if a setting
///   names no parameter or does not fit it, or if the program refuses the values
Program build(std::string_view name, const Parameters::Settings& settings = {});

/// Keeps a program in the registry while this object lives. CHORALE_PROGRAM makes one.
class Registration {
 public:
  Registration(const char* name, Factory, Here at = Here::current());
  ~Registration();
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;
};

}  // namespace chorale::dsl

/// Defines and registers a program:
///   CHORALE_PROGRAM(my_allreduce, Parameters& with) { ...; return program; }
/// The function may throw std::invalid_argument for values that it does not support.
#define CHORALE_PROGRAM(name, parameters) \
  static ::chorale::dsl::Program chorale_program_##name(parameters); \
  [[maybe_unused]] static const ::chorale::dsl::Registration chorale_registration_##name( \
      #name, &chorale_program_##name, ::chorale::dsl::Here{__FILE__, __LINE__}); \
  static ::chorale::dsl::Program chorale_program_##name(parameters)
