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
       "compiler/plan/resolve.hpp:1: compiler/plan may not include compiler/include/chorale/proof.hpp, which compiler/proof implements",
       table=IMPLEMENTED, files={**PROOF, "compiler/plan/resolve.hpp": '#include "chorale/proof.hpp"\n'})
expect("a public header that leads to one of a higher room",
       "compiler/include/chorale/facts.hpp:1: compiler/include may not include compiler/include/chorale/proof.hpp, which compiler/proof",
       table=IMPLEMENTED, files={**PROOF, "compiler/include/chorale/facts.hpp": '#include "chorale/proof.hpp"\n'})
expect("a public header of a low room that includes one of a higher room",
       "compiler/include/chorale/plan.hpp:1: compiler/plan may not include compiler/include/chorale/proof.hpp, which compiler/proof",
       table=IMPLEMENTED + "compiler/plan implements chorale/plan.hpp\n",
       files={"compiler/include/chorale/plan.hpp": '#include "chorale/proof.hpp"\n', "compiler/include/chorale/proof.hpp": ""})
expect("a row for a header that does not exist", "compiler/proof implements chorale/proof.hpp, which does not exist", table=IMPLEMENTED)
expect("files in a circle", "these files include each other in a circle: compiler/plan/resolve.hpp compiler/plan/tables.hpp",
       files={"compiler/plan/resolve.hpp": '#include "chorale/plan.hpp"\n#include "tables.hpp"\n',
              "compiler/plan/tables.hpp": '#include "resolve.hpp"\n'})
expect("a circle of three public headers", "in a circle: compiler/include/chorale/cell.hpp compiler/include/chorale/op.hpp compiler/include/chorale/plan.hpp",
       files={"compiler/include/chorale/plan.hpp": '#include "chorale/op.hpp"\n', "compiler/include/chorale/op.hpp": '#include "cell.hpp"\n',
              "compiler/include/chorale/cell.hpp": '#include "chorale/plan.hpp"\n'})
sys.exit(failures != 0)
