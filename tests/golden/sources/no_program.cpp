// This C++ source registers nothing.
int answer() { return 42; }
