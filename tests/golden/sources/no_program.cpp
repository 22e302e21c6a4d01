// A C++ source that registers nothing.
int answer() { return 42; }
