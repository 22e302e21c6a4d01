"""MSCCL++'s tests of operations on a rank's own memory, one operation each."""
from chorale.language import (Buffer, CollectiveProgram, LoopIterationContext, Rank, TestCollective, ThreadBlockGroup)

PREFIXES = ("unit_",)


def alone(name, inputs, outputs, protocol="Simple"):
    return CollectiveProgram(name, TestCollective(1, inputs, outputs), 1, protocol=protocol)


def unit_barrier():
    with alone("barrier_test", 0, 0) as program:
        Rank(0).barrier([0, 1])
    return program


def unit_copy():
    with alone("copy_test", 1, 1) as program:
        me = Rank(0)
        me.copy(me.get_output_buffer()[0:1], me.get_input_buffer()[0:1], tb=0)
    return program


def unit_copy_packets():
    with alone("copy_packets_test", 1, 1, "LL") as program:
        me, scratch = Rank(0), Buffer(0, 1)
        me.copy_packets(scratch[0:1], me.get_input_buffer()[0:1], tb=0)
    return program


def unit_unpack_packets():
    with alone("unpack_packets_test", 1, 1, "LL") as program:
        me, scratch = Rank(0), Buffer(0, 1)
        me.copy_packets(scratch[0], me.get_input_buffer()[0], tb=0)
        me.unpack_packets(me.get_output_buffer()[0], scratch[0], tb=0)
    return program


def unit_reduce():
    with alone("reduce_test", 2, 1) as program:
        me = Rank(0)
        mine = me.get_input_buffer()
        me.reduce(mine[0], [mine[1]], tb=0, dst_chunk=me.get_output_buffer()[0])
    return program


def unit_reduce_fuse():
    with alone("reduce_test", 3, 2) as program:
        me = Rank(0)
        mine = me.get_input_buffer()
        me.reduce(mine[0], [mine[1], mine[2]], tb=0, dst_chunk=me.get_output_buffer()[0])
    return program


def unit_reduce_packets():
    with alone("reduce_packets_test", 0, 0, "LL") as program:
        scratch = Buffer(0, 3)
        Rank(0).reduce(scratch[0], [scratch[1]], tb=0, dst_chunk=scratch[2], packet=True)
    return program


def unit_reduce_packets_fuse():
    with alone("reduce_packets_test", 0, 0, "LL") as program:
        scratch = Buffer(0, 4)
        Rank(0).reduce(scratch[0], [scratch[1], scratch[2]], tb=0, dst_chunk=scratch[3], packet=True)
    return program


def unit_reduce_copy_packets():
    with alone("reduce_copy_packets_test", 1, 0, "LL") as program:
        me, scratch = Rank(0), Buffer(0, 2)
        total = me.get_input_buffer()[0]
        me.reduce(total, [scratch[0]], tb=0, dst_chunk=total, packet=True)
        me.copy_packets(scratch[1], total, tb=0)
    return program


def unit_pipeline():
    with alone("barrier_test", 1, 1) as program:  # the name there
        me = Rank(0)
        with LoopIterationContext(unit=2**20, num_chunks=1):
            me.copy(me.get_output_buffer()[0], me.get_input_buffer()[0], tb=0)
    return program


def unit_tbg_copy():
    with alone("copy_test", 1, 1) as program:
        me = Rank(0)
        me.copy(me.get_output_buffer()[0], me.get_input_buffer()[0], tb_group=ThreadBlockGroup([0, 1, 2, 3]))
    return program


def unit_tbg_reduce():
    with alone("reduce_test", 2, 1) as program:
        me = Rank(0)
        mine = me.get_input_buffer()
        me.reduce(mine[0], [mine[1]], tb_group=ThreadBlockGroup([0, 1, 2, 3]), dst_chunk=me.get_output_buffer()[0])
    return program


def unit_tbg_reduce_fuse():
    with alone("reduce_test", 3, 2) as program:
        me = Rank(0)
        mine = me.get_input_buffer()
        me.reduce(mine[0], [mine[1], mine[2]], tb_group=ThreadBlockGroup([0, 1, 2, 3]), dst_chunk=me.get_output_buffer()[0])
    return program
