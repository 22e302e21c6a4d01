#!/usr/bin/env python3
"""Checks with the tools of others what `chorale convert` writes for them: interchange.py <chorale>

A Chakra trace is decoded by protoc with the real schema, and must say the same as the GOAL of the plan: no field is unknown,
and the kinds, sizes, ranks, tags and dependencies are equal. GOAL is translated and simulated by LogGOPSim. The test needs
protoc and CHORALE_CHAKRA_SCHEMA (the path of et_def.proto of github.com/mlcommons/chakra), or CHORALE_LOGGOPSIM (the folder
with txt2bin and LogGOPSim, built from github.com/spcl/LogGOPSim). Exit status 77: it has neither.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# By algorithm: settings. Together they have puts, gets, packets, port channels and signals without data.
PROGRAMS = {"allreduce_ring": "ranks=4", "allgather_direct": "ranks=2", "allgather_packets": "ranks=4", "allgather_by_port": "ranks=2",
            "reduce_direct": "ranks=4"}
LIMIT_S = 120
KINDS = {"calc": "COMP_NODE", "send": "COMM_SEND_NODE", "recv": "COMM_RECV_NODE"}


def run(*words, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, timeout=LIMIT_S, **more)
    if done.returncode:
        raise AssertionError(f"{' '.join(map(str, words))} ends with {done.returncode}\n{done.stdout.decode()}{done.stderr.decode()}")
    return done.stdout


def messages(trace):
    """Returns the messages of a file that has each one after its length."""
    at, found = 0, []
    while at < len(trace):
        size, shift = 0, 0
        while True:
            byte = trace[at]
            at, size, shift = at + 1, size | (byte & 127) << shift, shift + 7
            if byte < 128:
                break
        assert at + size <= len(trace), "the trace ends within a message"
        found.append(trace[at:at + size])
        at += size
    return found


def goal_nodes(text):
    """Returns, by rank, tuples (kind, size, sender, receiver, tag, dependencies)."""
    ranks = []
    for rank, body in re.findall(r"rank (\d+) \{\n(.*?)\}", text, re.S):
        nodes, after = [], {}
        for line in body.splitlines():
            if required := re.fullmatch(r"l(\d+) requires l(\d+)", line):
                after.setdefault(int(required[1]), []).append(int(required[2]) - 1)
            elif calc := re.fullmatch(r"l(\d+): calc \d+ cpu \d+", line):
                nodes.append([int(calc[1]), "calc"])
            else:
                label, kind, size, _, peer, tag = re.fullmatch(r"l(\d+): (send|recv) (\d+)b (to|from) (\d+) tag (\d+) cpu \d+", line).groups()
                ends = (int(rank), int(peer)) if kind == "send" else (int(peer), int(rank))
                nodes.append([int(label), kind, int(size), *ends, int(tag)])
        ranks.append([tuple(node[1:]) + (after.get(node[0], []),) for node in nodes])
    return ranks


def decoded(protoc, schema, kind, message):
    text = run(protoc, f"--proto_path={schema.parent}", f"--decode=ChakraProtoMsg.{kind}", schema.name, input=message).decode()
    unknown = re.search(r"^\s*\d+[:{ ].*", text, re.M)
    assert not unknown, f"the schema has no field {unknown[0]}"
    return text


def chakra_node(text):
    def attribute(name, kind):
        value = re.search(rf'attr \{{\s*name: "{name}"\s*{kind}_val: (\S+)\s*\}}', text)
        assert value, f"no attribute {name} of type {kind} in\n{text}"
        return int(value[1])
    kind = {name: word for word, name in KINDS.items()}[re.search(r"^type: (\w+)", text, re.M)[1]]
    after = [int(number) for number in re.findall(r"^data_deps: (\d+)", text, re.M)]
    assert re.search(r'name: "is_cpu_op"\s*bool_val: false', text), text
    if kind == "calc":
        attribute("num_ops", "int64"), attribute("tensor_size", "uint64")
        return kind, after
    return (kind, attribute("comm_size", "int64"), *(attribute(name, "int32") for name in ("comm_src", "comm_dst", "comm_tag")), after)


def check_chakra(plan, goal, folder, chorale, protoc, schema):
    run(chorale, "convert", plan, "--to", "chakra", "--bytes", "64K", "-o", folder / plan.stem)
    for rank, expected in enumerate(goal_nodes(goal)):
        metadata, *nodes = messages((folder / f"{plan.stem}.{rank}.et").read_bytes())
        assert f'string_val: "{plan.stem}"' in decoded(protoc, schema, "GlobalMetadata", metadata)
        texts = [decoded(protoc, schema, "Node", node) for node in nodes]
        ids = [int(number[1]) if (number := re.search(r"^id: (\d+)", text, re.M)) else 0 for text in texts]
        assert ids == list(range(len(expected))), ids
        assert [chakra_node(text) for text in texts] == expected, f"rank {rank} of {plan.stem} differs from its GOAL"


def check_goal(goal, folder, tools):
    (folder / "plan.goal").write_text(goal)
    run(tools / "txt2bin", "-i", folder / "plan.goal", "-o", folder / "plan.bin")
    said = run(tools / "LogGOPSim", "-f", folder / "plan.bin").decode()
    ends = [int(end) for end in re.findall(r"^Host \d+: (\d+)", said, re.M)]
    assert len(ends) == goal.count("\nrank ") and min(ends) > 0, said
    assert "nmatched" not in said, said


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    chorale, protoc = str(pathlib.Path(sys.argv[1]).resolve()), shutil.which("protoc")
    schema, tools = os.environ.get("CHORALE_CHAKRA_SCHEMA"), os.environ.get("CHORALE_LOGGOPSIM")
    if not (schema and protoc) and not tools:
        print("skipped: there is no protoc with CHORALE_CHAKRA_SCHEMA, and no CHORALE_LOGGOPSIM")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="interchange-") as name:
        folder = pathlib.Path(name)
        for program, setting in PROGRAMS.items():
            plan = folder / f"{program}.json"
            run(chorale, "compile", program, "--set", setting, "-o", plan)
            goal = run(chorale, "convert", plan, "--to", "goal", "--bytes", "64K").decode()
            if schema and protoc:
                check_chakra(plan, goal, folder, chorale, protoc, pathlib.Path(schema).resolve())
            if tools:
                check_goal(goal, folder, pathlib.Path(tools).resolve())
    print(f"{len(PROGRAMS)} plans: {'Chakra ' if schema and protoc else ''}{'LogGOPSim' if tools else ''}")


if __name__ == "__main__":
    main()
