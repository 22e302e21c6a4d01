"""Writes algorithms, with the names and arguments of MSCCL++'s mscclpp.language.

    from chorale.language import *

    with CollectiveProgram("mine", AllReduce(2, 1, True), 2) as program:
        ...
    plan = program.compile()

Objects belong to the program of the innermost `with` block, or to the program that is their first argument. Mistakes in calls
are findings at the line of the call, which compile() raises together. docs/python.md describes the language.
"""
from dataclasses import dataclass, field

from .._chorale import (AllGather, AllReduce, AllToAll, BaseBuffer, Broadcast, Buffer, BufferType, Chunk, Collective,
                        CollectiveProgram, Custom, LoopIterationContext, MemoryChannel, PortChannel, Rank, Reduce,
                        ReduceOperationType, ReduceScatter, ReplicationPolicy, Semaphore, SendRecv, SwitchChannel, SyncType, TestCollective,
                        ThreadBlockGroup, compile_for, get_program)

Program, ReduceOp = CollectiveProgram, ReduceOperationType  # the names in C++
MSCCLPPProgram = CollectiveProgram  # some of MSCCL++'s own programs still use this earlier name


@dataclass(frozen=True)
class AlgoSpec:
    """Holds the values of a program, for CollectiveProgram.from_spec(). Sizes are bytes."""

    name: str
    collective: Collective
    nranks_per_node: int
    world_size: int
    in_place: bool
    instances: int
    protocol: str
    instr_fusion: bool = True
    auto_sync: bool = True
    replication_policy: ReplicationPolicy = ReplicationPolicy.interleaved
    reuse_resources: bool = False
    num_threads_per_block: int = 1024
    use_double_scratch_buffer: bool = False
    buffer_alignment: int = 16
    min_message_size: int = 0
    max_message_size: int = 2**64 - 1
    tags: dict = field(default_factory=dict)


def JSON():
    """Returns the text of the plan of the innermost `with` block.

    Raises FindingsError if the program is wrong, RuntimeError outside of a `with` block.
    """
    return get_program().to_json()


__all__ = [
    "AlgoSpec", "AllGather", "AllReduce", "AllToAll", "BaseBuffer", "Broadcast", "Buffer", "BufferType", "Chunk", "Collective",
    "CollectiveProgram", "Custom", "JSON", "LoopIterationContext", "MSCCLPPProgram", "MemoryChannel", "PortChannel", "Program", "Rank",
    "Reduce", "ReduceOp", "ReduceOperationType", "ReduceScatter", "ReplicationPolicy", "Semaphore", "SendRecv", "SwitchChannel", "SyncType",
    "TestCollective", "ThreadBlockGroup", "compile_for", "get_program",
]
