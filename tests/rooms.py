#!/usr/bin/env python3
"""Checks that includes which the table of rooms does not allow are errors: rooms.py SOURCE_FOLDER

The test makes small trees of files and runs cmake/rooms.py on each.
"""
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(sys.argv[1])
TABLE = """
compiler/include:
compiler/plan: compiler/include
compiler/proof: compiler/include compiler/plan
compiler/include types chorale/plan.hpp
"""
FILES = {
    "compiler/include/chorale/plan.hpp": "#include <vector>\n",
    "compiler/plan/resolve.hpp": '#include "chorale/plan.hpp"\n',
    "compiler/proof/prove.cpp": '#include "chorale/plan.hpp"\n#include "compiler/plan/resolve.hpp"\n',
}
failures = 0


def expect(what, wanted, table=TABLE, **changed):
    """Runs the check on the tree with some files replaced. `wanted` is a part of what it prints, or None for a tree that is right."""
    global failures
    with tempfile.TemporaryDirectory() as folder:
        for path, text in {"cmake/rooms.txt": table, **FILES, **changed.get("files", {})}.items():
            file = pathlib.Path(folder, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        run = subprocess.run([sys.executable, str(ROOT / "cmake/rooms.py"), folder], text=True, capture_output=True)
    right = run.returncode == 0 if wanted is None else run.returncode == 1 and wanted in run.stdout
    print("ok  " if right else "FAIL", what)
    if not right:
        print(run.stdout, run.stderr)
        failures += 1


expect("a tree that is right", None)
expect("an include that goes up", "compiler/plan/resolve.hpp:1: compiler/plan may not include compiler/proof",
       files={"compiler/plan/resolve.hpp": '#include "compiler/proof/findings.hpp"\n', "compiler/proof/findings.hpp": ""})
expect("an include that is indented", "compiler/plan may not include compiler/proof",
       files={"compiler/plan/resolve.hpp": '#  include "compiler/proof/findings.hpp"\n', "compiler/proof/findings.hpp": ""})
expect("a public header that includes a private one", "compiler/include may not include compiler/plan",
       files={"compiler/include/chorale/plan.hpp": '#include "../../plan/resolve.hpp"\n'})
expect("an include of another room by ..", "compiler/proof/prove.cpp:1: ../plan/resolve.hpp is of compiler/plan",
       files={"compiler/proof/prove.cpp": '#include "../plan/resolve.hpp"\n'})
expect("an include of a room within the room by its name", "compiler/proof/prove.cpp:1: order/clock.hpp is of compiler/proof/order",
       table=TABLE.replace("compiler/proof:", "compiler/proof/order:\ncompiler/proof: compiler/proof/order"),
       files={"compiler/proof/prove.cpp": '#include "order/clock.hpp"\n', "compiler/proof/order/clock.hpp": ""})
expect("rows in a circle", "which has no row above",
       table=TABLE.replace("compiler/plan: compiler/include", "compiler/plan: compiler/include compiler/proof"))
expect("a name that is not needed", "compiler/plan names compiler/json, and includes nothing of it",
       table="compiler/json:" + TABLE.replace("compiler/plan: ", "compiler/plan: compiler/json "))
expect("a file without a room", "compiler/new/x.cpp: it is in no room", files={"compiler/new/x.cpp": ""})
# compiler/proof implements a public header, and compiler/plan stands below it.
IMPLEMENTED = TABLE + "compiler/proof implements chorale/proof.hpp\n"
PROOF = {"compiler/include/chorale/proof.hpp": '#include "chorale/plan.hpp"\n', "compiler/proof/proof.cpp": '#include "chorale/proof.hpp"\n'}
expect("a public header that a room implements", None, table=IMPLEMENTED, files=PROOF)
expect("the same header, included by a higher room", None, table=IMPLEMENTED + "compiler/targets: compiler/include compiler/proof\n",
       files={**PROOF, "compiler/targets/target.cpp": '#include "chorale/proof.hpp"\n'})
expect("the same header, included by another library", None, table=IMPLEMENTED + "dsl: compiler/include\n",
       files={**PROOF, "dsl/program.cpp": '#include "chorale/proof.hpp"\n'})
expect("a public header that a higher room implements",
       "compiler/plan/resolve.hpp:1: compiler/plan may not include compiler/include/chorale/proof.hpp, a header of compiler/proof",
       table=IMPLEMENTED, files={**PROOF, "compiler/plan/resolve.hpp": '#include "chorale/proof.hpp"\n'})
expect("a public header that leads to one of a higher room",
       "compiler/include/chorale/facts.hpp:1: compiler/include may not include compiler/include/chorale/proof.hpp, a header of compiler/proof",
       table=IMPLEMENTED + "compiler/include types chorale/facts.hpp\n",
       files={**PROOF, "compiler/include/chorale/facts.hpp": '#include "chorale/proof.hpp"\n'})
expect("a public header of a low room that includes one of a higher room",
       "compiler/include/chorale/plan.hpp:1: compiler/plan may not include compiler/include/chorale/proof.hpp, a header of compiler/proof",
       table=IMPLEMENTED.replace("compiler/include types", "compiler/plan implements"),
       files={"compiler/include/chorale/plan.hpp": '#include "chorale/proof.hpp"\n', "compiler/include/chorale/proof.hpp": ""})
expect("a public header in no row", "compiler/include/chorale/proof.hpp: no row of cmake/rooms.txt names it", files=PROOF)
expect("a public header in two rows", "compiler/include/chorale/proof.hpp, and so does compiler/proof: leave it in one row",
       table=IMPLEMENTED + "compiler/plan types chorale/proof.hpp\n", files=PROOF)
expect("a row with another word", "after compiler/proof, expected ':', 'implements' or 'types', but got 'has'",
       table=IMPLEMENTED.replace("implements", "has"), files=PROOF)
expect("a row of headers of a room without a row", "compiler/prove implements headers, but has no row of its own",
       table=IMPLEMENTED.replace("compiler/proof implements", "compiler/prove implements"), files=PROOF)
FOLDER = TABLE + "compiler/plan implements chorale/ops/\n"
expect("a row with a folder of headers", None, table=FOLDER, files={"compiler/include/chorale/ops/put.hpp": "void put();\n"})
expect("a row with an empty folder", "compiler/plan implements chorale/ops/, which does not exist", table=FOLDER)


def expect_types(what, wanted, header, other=""):
    """Runs the check on a tree whose header compiler/include/chorale/plan.hpp is in a row of types."""
    expect(what, wanted and f"plan.hpp: it declares {wanted}() without a body", table=TABLE + "compiler/include types chorale/other.hpp\n",
           files={"compiler/include/chorale/plan.hpp": "namespace chorale {\n" + header + "}\n", "compiler/include/chorale/other.hpp": other})


expect_types("types with a function", "chorale::ranks", "int ranks(int plan = 1);\n")
expect_types("types with a function in a nested namespace", "chorale::plan::ranks", "namespace plan {\nstd::vector<int> ranks();\n}\n")
expect_types("types with a member function", "chorale::Plan::ranks", "struct Plan final : Base {\n  int a = 0;\n  int ranks() const;\n};\n")
expect_types("types with a constructor", "chorale::Plan::Plan", "class Plan {\n public:\n  explicit Plan(int);\n};\n")
expect_types("types with a destructor", "chorale::Plan::~Plan", "class Plan {\n public:\n  virtual ~Plan();\n};\n")
expect_types("types with a function after one with a body", "chorale::ranks", "inline int blocks() { return 1; }\nint ranks(Plan p = {});\n")
expect_types("types with functions that need no definition", None, """
// int ranks();
#define RANKS int ranks();
using Ranks = int (*)(int);
inline constexpr int table[] = {1, 2}, most = max(1, 2);
constexpr int ranks(int x = int{1}) { return x; }
struct alignas(4) Plan {
  Plan() : blocks_{1}, ranks_(2) { for (;;) f(); }
  Plan(const Plan&) = default;
  virtual ~Plan() = default;
  virtual int ranks() const = 0;
  int last();
  std::function<void(int)> told, asked{};
  int (*run)(int) = nullptr;
  const char* text = "int ranks();";
};
inline int Plan::last() { return 1; }
template <class T> struct Op { T t; };
""")
expect_types("types with a function that an including header defines", None, "int ranks();\n",
             '#include "chorale/plan.hpp"\ninline int chorale::ranks() { return 1; }\n')
expect_types("types with a function that another header defines", "chorale::ranks", "int ranks();\n", "inline int chorale::ranks() { return 1; }\n")
expect("a row for a header that does not exist", "compiler/proof implements chorale/proof.hpp, which does not exist", table=IMPLEMENTED)
expect("files in a circle", "these files include each other in a circle: compiler/plan/resolve.hpp compiler/plan/tables.hpp",
       files={"compiler/plan/resolve.hpp": '#include "chorale/plan.hpp"\n#include "tables.hpp"\n',
              "compiler/plan/tables.hpp": '#include "resolve.hpp"\n'})
expect("a circle of three public headers", "in a circle: compiler/include/chorale/cell.hpp compiler/include/chorale/op.hpp compiler/include/chorale/plan.hpp",
       table=TABLE + "compiler/include types chorale/op.hpp chorale/cell.hpp\n",
       files={"compiler/include/chorale/plan.hpp": '#include "chorale/op.hpp"\n', "compiler/include/chorale/op.hpp": '#include "cell.hpp"\n',
              "compiler/include/chorale/cell.hpp": '#include "chorale/plan.hpp"\n'})
sys.exit(failures != 0)
