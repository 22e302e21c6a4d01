// This program exists for its precompiled headers, which the tests use.

int main() {}
