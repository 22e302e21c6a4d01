"""This module has the functions that several of the ported programs share."""
from chorale.language import MemoryChannel, Rank, SyncType  # noqa: F401


def others(rank, first, end):
    """Returns ranks [first, end) without `rank`."""
    return [other for other in range(first, end) if other != rank]


def slot(rank, of):
    """Returns the position of `rank` among the others of `of`."""
    return rank if rank < of else rank - 1


def channels_to(peers, rank):
    """Returns a channel from `rank` to each of `peers`."""
    return [MemoryChannel(peer, rank) for peer in peers]


def sync(peers, tb, relaxed):
    """Signals every peer, then waits for every peer."""
    for peer in peers:
        peer.signal(tb, relaxed=relaxed)
    for peer in peers:
        peer.wait(tb, relaxed=relaxed)


def enter(peer, tb):
    """Synchronises with a peer, after which its buffers may be used."""
    sync([peer], tb, True)


def leave(peer, tb):
    """Synchronises with a peer, after which the moved data has arrived at both."""
    peer.signal(tb, data_sync=SyncType.before)
    peer.wait(tb, data_sync=SyncType.after)


def inputs(rank):
    return Rank(rank).get_input_buffer()


def outputs(rank):
    return Rank(rank).get_output_buffer()
