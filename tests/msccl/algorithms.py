#!/usr/bin/env python3
"""Writes MSCCL algorithms to test the import with: algorithms.py NAME RANKS writes one to standard output,
algorithms.py --names all names."""
import sys

BUFFERS = ("i", "o", "s")


class Algorithm:
    """Holds the steps of thread blocks. A step may have any number of dependencies: all except the last become nops."""

    def __init__(self, name, collective, ranks, chunks, inplace=False, proto="Simple"):
        self.name, self.collective, self.ranks, self.chunks = name, collective, ranks, chunks
        self.inplace, self.proto = inplace, proto
        self.blocks = [{} for _ in range(ranks)]  # by (send, recv, chan): a list of steps
        self.copies = [[] for _ in range(ranks)]  # pairs of chunks of input and output

    def step(self, gpu, kind, src=None, dst=None, cnt=1, send=-1, recv=-1, chan=0, after=()):
        """Appends a step; src and dst are pairs of letter and offset. Returns the value that `after` of other steps
        takes."""
        key = (send, recv, chan)
        steps = self.blocks[gpu].setdefault(key, [])
        before = [(other, number) for other, number in after if other != key]
        for other in before[:-1]:
            steps.append({"type": "nop", "after": other})
        made = {"type": kind, "src": src or ("i", 0), "dst": dst or ("o", 0), "cnt": cnt}
        made["after"] = before[-1] if before else None
        steps.append(made)
        return key, len(steps) - 1

    def sizes(self, gpu):
        sizes = dict.fromkeys(BUFFERS, 0)
        for source, destination in self.copies[gpu]:
            sizes["i"], sizes["o"] = max(sizes["i"], source + 1), max(sizes["o"], destination + 1)
        for key, steps in self.blocks[gpu].items():
            for step in steps:
                sides = {"s": ("src",), "r": ("dst",), "rcs": ("dst",), "rrs": ("src",), "nop": ()}
                for side in sides.get(step["type"], ("src", "dst")):
                    letter, offset = step[side]
                    sizes[letter] = max(sizes[letter], offset + step["cnt"])
        return sizes

    def text(self):
        lines = [f'<algo name="{self.name}" proto="{self.proto}" nchannels="{1 + max(k[2] for b in self.blocks for k in b)}" '
                 f'nchunksperloop="{self.chunks}" ngpus="{self.ranks}" coll="{self.collective}" '
                 f'inplace="{int(self.inplace)}" outofplace="{int(not self.inplace)}" minBytes="0" maxBytes="0">']
        for gpu, blocks in enumerate(self.blocks):
            keys = sorted(blocks)
            sizes = self.sizes(gpu)
            awaited = {step["after"] for steps in blocks.values() for step in steps}
            lines.append(f'  <gpu id="{gpu}" ' + " ".join(f'{b}_chunks="{sizes[b]}"' for b in BUFFERS) + ">")
            lines += [f'    <copy i_off="{source}" o_off="{destination}"/>' for source, destination in self.copies[gpu]]
            for number, key in enumerate(keys):
                lines.append(f'    <tb id="{number}" send="{key[0]}" recv="{key[1]}" chan="{key[2]}">')
                for position, step in enumerate(blocks[key]):
                    lines.append(self.line(step, position, keys, (key, position) in awaited))
                lines.append("    </tb>")
            lines.append("  </gpu>")
        return "\n".join(lines + ["</algo>"]) + "\n"

    def line(self, step, position, keys, awaited):
        src, dst = step.get("src", ("i", -1)), step.get("dst", ("o", -1))
        block, number = (keys.index(step["after"][0]), step["after"][1]) if step["after"] else (-1, -1)
        return (f'      <step s="{position}" type="{step["type"]}" srcbuf="{src[0]}" srcoff="{src[1]}" dstbuf="{dst[0]}" '
                f'dstoff="{dst[1]}" cnt="{step.get("cnt", 0)}" depid="{block}" deps="{number}" hasdep="{int(awaited)}"/>')


def ring_allreduce(ranks, channels=2, inplace=False):
    """Sends each chunk round twice: as a growing sum, then as the sum."""
    made = Algorithm("ring_allreduce", "allreduce", ranks, ranks * channels, inplace)
    out = "i" if inplace else "o"
    for rank in range(ranks):
        for chan in range(channels):
            ends = {"send": (rank + 1) % ranks, "recv": (rank - 1) % ranks, "chan": chan}

            def add(kind, step, **more):
                at = chan * ranks + (rank - step) % ranks
                made.step(rank, kind, ("i", at), (out, at), **ends, **more)

            add("s", 0)
            for step in range(1, ranks - 1):
                add("rrs", step)
            add("rrcs", ranks - 1)
            for step in range(ranks, 2 * ranks - 2):
                add("rcs", step)
            add("r", 2 * ranks - 2)
    return made


def allpairs_allreduce(ranks):
    """Makes each rank gather its part of all inputs in scratch, add it up and send the sum to all ranks."""
    made = Algorithm("allpairs_allreduce", "allreduce", ranks, ranks, True, "LL")
    for rank in range(ranks):
        peers = [peer for peer in range(ranks) if peer != rank]
        gathered, taken = [], []
        for peer in peers:
            taken.append(made.step(rank, "s", ("i", peer), ("s", rank), send=peer))
        for slot, peer in enumerate(peers):
            gathered.append(made.step(rank, "r", ("i", rank), ("s", slot), recv=peer))
        for slot, _ in enumerate(peers):
            last = made.step(rank, "re", ("s", slot), ("i", rank), after=gathered if slot == 0 else ())
        for peer in peers:
            made.step(rank, "s", ("i", rank), ("i", rank), send=peer, after=[last])
        for peer, read in zip(peers, taken):
            made.step(rank, "r", ("i", peer), ("i", peer), recv=peer, after=[read])
    return made


def ring_allgather(ranks, channels=3, inplace=False):
    made = Algorithm("ring_allgather", "allgather", ranks, ranks * channels, inplace)
    for rank in range(ranks):
        for chan in range(channels):
            ends = {"send": (rank + 1) % ranks, "recv": (rank - 1) % ranks, "chan": chan}
            own = rank * channels + chan
            made.step(rank, "s", ("i", chan), ("o", own), **ends)
            if not inplace:
                made.step(rank, "cpy", ("i", chan), ("o", own), **ends)
            for step in range(1, ranks):
                part = ((rank - step) % ranks) * channels + chan
                made.step(rank, "r" if step == ranks - 1 else "rcs", ("o", part), ("o", part), **ends)
    return made


def hierarchical_allreduce(ranks):
    """Uses nodes of two ranks. Halves are added within the node and then along a chain of nodes, and return the same
    way."""
    made = Algorithm("hierarchical_allreduce", "allreduce", ranks, 2, True)
    nodes = ranks // 2
    for rank in range(ranks):
        node, local = divmod(rank, 2)
        mate, mine, other = rank ^ 1, ("i", local), ("i", 1 - local)
        up = rank - 2 if node else -1
        down = rank + 2 if node < nodes - 1 else -1
        sent = made.step(rank, "s", other, other, send=mate)
        final = made.step(rank, "rrc", mine, mine, recv=mate)
        if up >= 0 and down >= 0:
            read = made.step(rank, "rrs", mine, mine, send=down, recv=up, chan=1, after=[final])
            final = made.step(rank, "rcs", mine, mine, send=up, recv=down, chan=2, after=[read])
        elif up >= 0:
            final = made.step(rank, "rrc", mine, mine, recv=up, chan=1, after=[final])
            made.step(rank, "s", mine, mine, send=up, chan=2, after=[final])
        elif down >= 0:
            read = made.step(rank, "s", mine, mine, send=down, chan=1, after=[final])
            final = made.step(rank, "r", mine, mine, recv=down, chan=2, after=[read])
        made.step(rank, "s", mine, mine, send=mate, after=[final])
        made.step(rank, "r", other, other, recv=mate, after=[sent])
    return made


def two_step_alltoall(ranks):
    """Uses nodes of two ranks. Data for another node is gathered at the rank with the sender's position there, and
    sent in one piece."""
    made = Algorithm("two_step_alltoall", "alltoall", ranks, ranks)
    nodes = ranks // 2
    for rank in range(ranks):
        node, local = divmod(rank, 2)
        mate = rank ^ 1
        made.step(rank, "cpy", ("i", rank), ("o", rank))
        made.step(rank, "s", ("i", mate), ("o", rank), send=mate)
        made.step(rank, "r", ("i", rank), ("o", mate), recv=mate)
        slot = 0
        for there in range(nodes):
            if there == node:
                continue
            far, across = 2 * there + local, 2 * there + 1 - local
            ready = [None, None]
            ready[local] = made.step(rank, "cpy", ("i", far), ("s", slot + local))
            made.step(rank, "s", ("i", across), ("s", 0), send=mate)
            ready[1 - local] = made.step(rank, "r", ("i", far), ("s", slot + 1 - local), recv=mate)
            made.step(rank, "s", ("s", slot), ("o", 2 * node), cnt=2, send=far, chan=1, after=ready)
            made.step(rank, "r", ("s", 0), ("o", 2 * there), cnt=2, recv=far, chan=1)
            slot += 2
    return made


def halving_doubling(ranks):
    """Runs recursive halving with sums, then recursive doubling, with messages of several chunks."""
    made = Algorithm("halving_doubling", "allreduce", ranks, ranks, True)
    for rank in range(ranks):
        begin, half, summed, levels = 0, ranks // 2, [], []
        while half:
            peer = rank ^ half
            give, keep = (begin, begin + half) if rank & half else (begin + half, begin)
            sent = made.step(rank, "s", ("i", give), ("i", give), cnt=half, send=peer, after=summed)
            summed = [made.step(rank, "rrc", ("i", keep), ("i", keep), cnt=half, recv=peer, after=summed)]
            levels.append((peer, give, keep, half, sent))
            begin, half = keep, half // 2
        done = summed  # the steps that must end before all of `keep` is the sum
        for peer, give, keep, half, sent in reversed(levels):
            made.step(rank, "s", ("i", keep), ("i", keep), cnt=half, send=peer, after=done)
            done = done + [made.step(rank, "r", ("i", give), ("i", give), cnt=half, recv=peer, after=[sent])]
    return made


def direct_reducescatter(ranks, inplace=False):
    made = Algorithm("direct_reducescatter", "reduce_scatter", ranks, 2 * ranks, inplace)
    for rank in range(ranks):
        own = 2 * rank
        before = None if inplace else made.step(rank, "cpy", ("i", own), ("o", 0), cnt=2)
        for step in range(1, ranks):
            peer, source = (rank + step) % ranks, (rank - step) % ranks
            made.step(rank, "s", ("i", 2 * peer), ("o", 0), cnt=2, send=peer)
            before = made.step(rank, "rrc", ("o", 0), ("o", 0), cnt=2, recv=source, after=[before] if before else [])
    return made


def direct_alltoall(ranks):
    made = Algorithm("direct_alltoall", "alltoall", ranks, ranks)
    for rank in range(ranks):
        made.step(rank, "cpy", ("i", rank), ("o", rank))
        for peer in range(ranks):
            if peer == rank:
                continue
            made.step(rank, "s", ("i", peer), ("o", rank), send=peer, recv=peer)
            made.step(rank, "r", ("i", rank), ("o", peer), send=peer, recv=peer)
    return made


def tree_broadcast(ranks, root=1):
    """Sends along a binary tree below the root, in two pieces, one after the other."""
    made = Algorithm("tree_broadcast", "broadcast", ranks, 2)
    for place in range(ranks):
        rank, parent = (place + root) % ranks, ((place - 1) // 2 + root) % ranks
        children = [(child + root) % ranks for child in (2 * place + 1, 2 * place + 2) if child < ranks]
        for piece in range(2):
            at, got = ("i", piece), []
            if place:
                got = [made.step(rank, "r", at, ("o", piece), recv=parent)]
                at = ("o", piece)
            else:
                made.step(rank, "cpy", at, ("o", piece))
            for child in children:
                made.step(rank, "s", at, ("o", piece), send=child, after=got)
    return made


def copied_allgather(ranks, inplace):
    """Writes steps as TACCL does: all are in the output, to which <copy> brings the rank's own part. Each part has
    two chunks."""
    made = Algorithm("copied_allgather", "allgather", ranks, 2 * ranks, inplace)
    for rank in range(ranks):
        made.copies[rank] = [(0, 2 * rank), (1, 2 * rank + 1)]
        for peer in range(ranks):
            if peer == rank:
                continue
            made.step(rank, "s", ("o", 2 * rank), ("o", 2 * rank), cnt=2, send=peer)
            made.step(rank, "r", ("o", 2 * peer), ("o", 2 * peer), cnt=2, recv=peer)
    return made


def copied_allreduce(ranks, inplace):
    """Writes steps as TACCL does: a ring in the output, to which the whole input is copied."""
    made = Algorithm("copied_allreduce", "allreduce", ranks, ranks, inplace)
    for rank in range(ranks):
        made.copies[rank] = [(chunk, chunk) for chunk in range(ranks)]
        ends = {"send": (rank + 1) % ranks, "recv": (rank - 1) % ranks}
        for step in range(2 * ranks - 2):
            sent, got = (rank - step) % ranks, (rank - step - 1) % ranks
            made.step(rank, "s", ("o", sent), ("o", sent), **ends)
            made.step(rank, "rrc" if step < ranks - 1 else "r", ("o", got), ("o", got), **ends)
    return made


def copied_reducescatter(ranks, inplace):
    """Adds all other ranks' parts to the rank's own part, which <copy> brings to the output."""
    made = Algorithm("copied_reducescatter", "reducescatter", ranks, ranks, inplace)
    for rank in range(ranks):
        made.copies[rank], before = [(rank, 0)], []
        for step in range(1, ranks):
            peer, source = (rank + step) % ranks, (rank - step) % ranks
            made.step(rank, "s", ("i", peer), ("o", 0), send=peer)
            before = [made.step(rank, "rrc", ("o", 0), ("o", 0), recv=source, after=before)]
    return made


def copied_alltoall(ranks):
    """Writes steps as TACCL does: a part that a rank keeps is a <copy>, which MSCCL itself leaves out."""
    made = Algorithm("copied_alltoall", "alltoall", ranks, ranks)
    for rank in range(ranks):
        made.copies[rank] = [(rank, rank)]
        for peer in range(ranks):
            if peer == rank:
                continue
            made.step(rank, "s", ("i", peer), ("o", rank), send=peer)
            made.step(rank, "r", ("i", rank), ("o", peer), recv=peer)
    return made


def ring_reduce(ranks, inplace=False):
    """Computes the sum only at the last rank, along a chain."""
    made = Algorithm("ring_reduce", "reduce", ranks, 2, inplace)
    for rank in range(ranks):
        send, recv = rank + 1 if rank < ranks - 1 else -1, rank - 1
        for chunk in range(2):
            kind = "s" if rank == 0 else "rrs" if send >= 0 else "rrc"
            made.step(rank, kind, ("i", chunk), ("i" if inplace else "o", chunk), send=send, recv=recv)
    return made


ALGORITHMS = {
    "ring_allreduce": ring_allreduce,
    "ring_allreduce_inplace": lambda ranks: ring_allreduce(ranks, 1, True),
    "allpairs_allreduce": allpairs_allreduce,
    "ring_allgather": ring_allgather,
    "ring_allgather_inplace": lambda ranks: ring_allgather(ranks, 2, True),
    "hierarchical_allreduce": hierarchical_allreduce,
    "two_step_alltoall": two_step_alltoall,
    "halving_doubling": halving_doubling,
    "direct_reducescatter": direct_reducescatter,
    "direct_reducescatter_inplace": lambda ranks: direct_reducescatter(ranks, True),
    "direct_alltoall": direct_alltoall,
    "tree_broadcast": tree_broadcast,
    "copied_allgather": lambda ranks: copied_allgather(ranks, False),
    "copied_allgather_inplace": lambda ranks: copied_allgather(ranks, True),
    "copied_allreduce": lambda ranks: copied_allreduce(ranks, False),
    "copied_allreduce_inplace": lambda ranks: copied_allreduce(ranks, True),
    "copied_reducescatter": lambda ranks: copied_reducescatter(ranks, False),
    "copied_reducescatter_inplace": lambda ranks: copied_reducescatter(ranks, True),
    "copied_alltoall": copied_alltoall,
    "ring_reduce": ring_reduce,
    "ring_reduce_inplace": lambda ranks: ring_reduce(ranks, True),
}

if __name__ == "__main__":
    if sys.argv[1:] == ["--names"]:
        sys.exit(print(*ALGORITHMS))
    if len(sys.argv) != 3 or sys.argv[1] not in ALGORITHMS:
        sys.exit(__doc__)
    sys.stdout.write(ALGORITHMS[sys.argv[1]](int(sys.argv[2])).text())
