"""Lets programs of MSCCL++ run unchanged.

    import chorale.mscclpp
    chorale.mscclpp.install()
    from mscclpp.language.program import *
"""
import importlib
import pkgutil
import sys
import types

from . import language
from ._chorale import compile_for


def install(target=None, allow=()):
    """Puts chorale.language into sys.modules as mscclpp.language, with its modules.

    target: the executor for which JSON() and to_json() compile, "chorale" or "mscclpp"; default: the program's.
    allow: proofs and checks of the target to leave out, by Finding.kind.

    If the real package mscclpp is imported already, only its language is replaced.

    Raises ValueError for an unknown target.
    """
    compile_for(target=target, allow=list(allow))
    package = sys.modules.get("mscclpp")
    if package is None:
        package = types.ModuleType("mscclpp", "Stands for MSCCL++, of which Chorale has the language.")
        package.__path__ = []
        sys.modules["mscclpp"] = package
    package.language = language
    sys.modules["mscclpp.language"] = language
    for module in pkgutil.walk_packages(language.__path__, "chorale.language."):
        sys.modules["mscclpp." + module.name[len("chorale."):]] = importlib.import_module(module.name)
