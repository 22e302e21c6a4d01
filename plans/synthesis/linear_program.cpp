#include "linear_program.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <string>

#include "chorale/usage_error.hpp"

namespace chorale::synthesis {
namespace {

/// Holds the functions of Clp's C interface (Clp_C_Interface.h, version 1.17). The library is loaded when it
/// is needed, so that a program runs without it too.
class Clp {
 public:
  using Model = void;

  static const Clp& loaded() {
    static const Clp clp;
    return clp;
  }

  Model* (*newModel)();
  void (*deleteModel)(Model*);
  void (*setLogLevel)(Model*, int);
  void (*loadProblem)(Model*, int columns, int rows, const int* begins, const int* row_of,
                      const double* factors, const double* lowest, const double* highest, const double* costs,
                      const double* least, const double* most);
  void (*setMaximumSeconds)(Model*, double);
  int (*initialSolve)(Model*);
  int (*isProvenOptimal)(Model*);
  const double* (*getColSolution)(Model*);

 private:
  Clp() {
    library_ = dlopen("libClp.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library_) {
      throw UsageError(
          "the search solves linear programs with COIN-OR's Clp, and libClp.so.1 cannot be loaded: install "
          "it "
          "(apt-get install coinor-libclp1)");
    }
    find(newModel, "Clp_newModel");
    find(deleteModel, "Clp_deleteModel");
    find(setLogLevel, "Clp_setLogLevel");
    find(loadProblem, "Clp_loadProblem");
    find(setMaximumSeconds, "Clp_setMaximumSeconds");
    find(initialSolve, "Clp_initialSolve");
    find(isProvenOptimal, "Clp_isProvenOptimal");
    find(getColSolution, "Clp_getColSolution");
  }

  template <class Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    if (!function)
      throw UsageError(std::string("libClp.so.1 has no function ") + name + ": install version 1.17");
  }

  void* library_;
};

}  // namespace

int LinearProgram::row(double least, double most) {
  least_.push_back(least);
  most_.push_back(most);
  return int(least_.size()) - 1;
}

int LinearProgram::column(double cost, std::vector<std::pair<int, double>> factors) {
  costs_.push_back(cost);
  highest_.push_back(infinity);
  columns_.push_back(std::move(factors));
  return int(columns_.size()) - 1;
}

std::vector<double> LinearProgram::minimised(double seconds) const {
  const Clp& clp = Clp::loaded();
  std::vector<int> begins{0}, rows;
  std::vector<double> factors;
  for (const auto& column : columns_) {
    for (const auto& [row, factor] : column) {
      rows.push_back(row);
      factors.push_back(factor);
    }
    begins.push_back(int(rows.size()));
  }
  const std::vector<double> lowest(columns_.size(), 0);
  const std::unique_ptr<Clp::Model, void (*)(Clp::Model*)> model(clp.newModel(), clp.deleteModel);
  clp.setLogLevel(model.get(), 0);
  clp.loadProblem(model.get(), int(columns_.size()), int(least_.size()), begins.data(), rows.data(),
                  factors.data(), lowest.data(), highest_.data(), costs_.data(), least_.data(), most_.data());
  clp.setMaximumSeconds(model.get(), std::max(seconds, 0.01));  // Clp takes negative numbers as no limit
  clp.initialSolve(model.get());
  if (!clp.isProvenOptimal(model.get())) return {};
  const double* const values = clp.getColSolution(model.get());
  return {values, values + columns_.size()};
}

}  // namespace chorale::synthesis
