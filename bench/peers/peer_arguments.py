"""Declares the arguments with which `chorale bench --peer` starts a program (docs/benchmarks.md)."""


def declare(parser):
    numbers = lambda text: [int(word) for word in text.split(",")]
    parser.add_argument("collective")
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--dtype", required=True)
    parser.add_argument("--bytes", type=numbers, required=True)
    parser.add_argument("--modes", type=lambda text: text.split(","), required=True)
    parser.add_argument("--calls", type=int, required=True)
    parser.add_argument("--output", required=True)
