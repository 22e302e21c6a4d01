// The program whose precompiled headers those of the tests are.

int main() {}
