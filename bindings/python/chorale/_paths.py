"""Finds the data that is installed beside the package."""
import os
import shutil
import sys


def command_file():
    """Returns the path of the command chorale: that of the wheel, of the installation, or of the build folder, else one on the PATH.

    Raises FileNotFoundError if there is none.
    """
    package = os.path.dirname(os.path.abspath(__file__))
    # An installation by CMake has the package in PREFIX/lib/python3/dist-packages.
    places = [os.path.join(package, "bin", "chorale"), os.path.join(package, *[os.pardir] * 4, "bin", "chorale")]
    try:
        from . import _build
        places.insert(0, _build.COMMAND)
    except ImportError:
        pass
    for place in places:
        if os.access(place, os.X_OK):
            return os.path.normpath(place)
    found = shutil.which("chorale")
    if found:
        return found
    raise FileNotFoundError(f"the command chorale is in none of {', '.join(places)}, nor on the PATH; install Chorale again")


def plans_folder():
    """Returns the folder of the shipped plans, which has shipped/, tuned/ and machines/.

    Raises FileNotFoundError if there is none.
    """
    package = os.path.dirname(os.path.abspath(__file__))
    # An installation by CMake has the package in PREFIX/lib/python3/dist-packages.
    above = (os.path.join(package, *[os.pardir] * up) for up in (4, 3, 5))
    places = [os.path.join(prefix, "share", "chorale", "plans") for prefix in (package, *above, sys.prefix)]  # package: a wheel
    try:
        from . import _build
        places.insert(0, _build.PLANS)
    except ImportError:
        pass
    for place in places:
        if os.path.isdir(os.path.join(place, "shipped")):
            return os.path.normpath(place)
    raise FileNotFoundError(f"the shipped plans are in none of {', '.join(places)}; install Chorale again")


def machine_file(name):
    """Returns the path of a machine's file: `name` itself, or that of a shipped machine such as "nvidia_h200"."""
    if name is None:
        name = "nvidia_h200"
    name = os.fspath(name)
    if os.path.exists(name):
        return name
    folder = os.path.join(plans_folder(), "machines")
    shipped = sorted(file[:-5] for file in os.listdir(folder) if file.endswith(".json"))
    if name in shipped:
        return os.path.join(folder, name + ".json")
    raise FileNotFoundError(f"there is no machine file {name}, and shipped machines are {', '.join(shipped)}")
