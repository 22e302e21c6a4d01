#!/usr/bin/env python3
"""Checks that every file includes what it uses of the standard library: includes.py SOURCE_FOLDER [--mend]

A file that relies on another library's header for <cstdint> stops compiling when a newer compiler's headers include
less. So a header must include what it uses itself. A source may also rely on our own headers that it includes. With
--mend the script adds the missing lines; read the diff.
"""
import os
import pathlib
import re
import sys

FOLDERS = ("bench", "bindings", "compiler", "dsl", "executor", "plans", "tests", "tools")
HEADERS = (".hpp", ".cuh", ".h")
SUFFIXES = {".cpp", ".cu", *HEADERS}
# "chorale/x.hpp" and "folder/x.hpp" are searched for in these folders, after the folder of the file.
INCLUDE_FOLDERS = ("", "compiler/include", "dsl/include", "executor/include", "plans/include", "bindings/c/include")

# Maps each header to the words that follow std:: and come from it.
QUALIFIED = {
    "algorithm": "all_of any_of none_of for_each find find_if find_if_not count count_if equal mismatch search copy copy_if copy_n "
                 "copy_backward fill fill_n generate replace replace_if remove remove_if unique reverse rotate shuffle sort "
                 "stable_sort partial_sort nth_element is_sorted find_first_of lower_bound upper_bound equal_range binary_search merge "
                 "includes set_union set_intersection set_difference min max minmax clamp min_element max_element "
                 "minmax_element lexicographical_compare next_permutation prev_permutation transform partition "
                 "stable_partition adjacent_find",
    "any": "any any_cast",
    "array": "array to_array",
    "atomic": "atomic atomic_ref atomic_flag atomic_thread_fence memory_order memory_order_relaxed memory_order_acquire "
              "memory_order_release memory_order_acq_rel memory_order_seq_cst",
    "barrier": "barrier",
    "bit": "bit_cast bit_ceil bit_floor bit_width countl_zero countr_zero popcount has_single_bit endian rotl rotr",
    "bitset": "bitset",
    "cctype": "isalnum isalpha isdigit isspace tolower toupper isprint isxdigit isupper islower",
    "charconv": "from_chars to_chars chars_format",
    "chrono": "chrono chrono_literals",
    "cmath": "isnan isinf isfinite sqrt pow exp log log2 log10 ceil floor fabs round lround llround fmod frexp ldexp trunc "
             "nextafter nextafterf signbit nearbyint hypot copysign fma remainder nan nanf fmax fmin ilogb",
    "compare": "strong_ordering weak_ordering partial_ordering",
    "concepts": "same_as integral floating_point convertible_to invocable unsigned_integral signed_integral derived_from "
                "equality_comparable regular constructible_from",
    "condition_variable": "condition_variable condition_variable_any cv_status",
    "csignal": "signal raise",
    "cstddef": "byte ptrdiff_t nullptr_t max_align_t",
    "cstdio": "printf fprintf snprintf fopen fclose fputs fputc puts perror fflush fwrite fread FILE sscanf vsnprintf "
             "tmpfile rewind ferror clearerr rename setvbuf",
    "cstdlib": "getenv exit abort abs strtol strtoul strtoll strtoull strtod malloc free calloc realloc aligned_alloc "
               "atoi system quick_exit at_quick_exit _Exit atexit llabs",
    "cstring": "memcpy memset memcmp memmove memchr strlen strcmp strncmp strerror strchr strrchr strstr strcpy strncpy",
    "deque": "deque",
    "exception": "exception exception_ptr current_exception rethrow_exception make_exception_ptr terminate "
                 "uncaught_exceptions set_terminate nested_exception",
    "filesystem": "filesystem",
    "fstream": "ifstream ofstream fstream filebuf",
    "functional": "function hash less greater plus multiplies minus reference_wrapper ref cref bind invoke equal_to "
                  "not_fn mem_fn identity bind_front bit_or bit_and bit_xor less_equal greater_equal",
    "future": "future future_status launch promise async packaged_task shared_future",
    "iomanip": "setw setprecision setfill quoted",
    "iostream": "cout cerr cin clog",
    "iterator": "back_inserter inserter istreambuf_iterator ostreambuf_iterator istream_iterator distance advance next "
                "prev make_move_iterator reverse_iterator make_reverse_iterator",
    "latch": "latch",
    "limits": "numeric_limits",
    "list": "list",
    "locale": "locale",
    "map": "map multimap",
    "memory": "unique_ptr shared_ptr weak_ptr make_unique make_unique_for_overwrite make_shared make_shared_for_overwrite allocator_arg enable_shared_from_this addressof "
              "default_delete static_pointer_cast dynamic_pointer_cast construct_at destroy_at allocator",
    "mutex": "mutex lock_guard unique_lock scoped_lock once_flag call_once recursive_mutex try_to_lock adopt_lock defer_lock "
             "timed_mutex",
    "new": "bad_alloc nothrow nothrow_t align_val_t launder",
    "numbers": "numbers",
    "numeric": "accumulate iota gcd lcm reduce partial_sum inner_product exclusive_scan inclusive_scan adjacent_difference "
               "transform_reduce midpoint",
    "optional": "optional nullopt make_optional nullopt_t",
    "initializer_list": "initializer_list",
    "istream": "istream ws",
    "ios": "ios streamsize hex hexfloat",
    "ostream": "ostream endl flush",
    "queue": "queue priority_queue",
    "random": "mt19937 mt19937_64 minstd_rand random_device uniform_int_distribution uniform_real_distribution "
              "normal_distribution bernoulli_distribution discrete_distribution",
    "ranges": "views",
    "ratio": "ratio milli micro nano kilo mega",
    "regex": "regex smatch cmatch regex_match regex_search regex_replace sregex_iterator",
    "semaphore": "counting_semaphore binary_semaphore",
    "set": "set multiset",
    "shared_mutex": "shared_mutex shared_lock",
    "source_location": "source_location",
    "span": "span as_bytes as_writable_bytes dynamic_extent",
    "sstream": "ostringstream istringstream stringstream",
    "stack": "stack",
    "stdexcept": "runtime_error invalid_argument logic_error out_of_range domain_error length_error overflow_error "
                 "range_error",
    "stop_token": "stop_token stop_source stop_callback",
    "string": "string string_literals to_string stoi stol stoul stoull stod getline u8string wstring",
    "string_view": "string_view",
    "system_error": "error_code system_error errc make_error_code generic_category system_category",
    "thread": "thread jthread this_thread",
    "tuple": "tuple make_tuple tie apply forward_as_tuple tuple_size_v tuple_cat ignore tuple_element_t",
    "type_traits": "is_same_v is_same enable_if_t conditional_t decay_t remove_cvref_t remove_reference_t remove_const_t "
                   "is_integral_v is_floating_point_v is_trivially_copyable_v is_enum_v underlying_type_t invoke_result_t "
                   "is_base_of_v is_convertible_v is_void_v is_unsigned_v is_signed_v is_constructible_v true_type "
                   "false_type integral_constant void_t make_unsigned_t make_signed_t is_constant_evaluated "
                   "is_invocable_v is_standard_layout_v is_pointer_v type_identity_t remove_pointer_t is_const_v "
                   "is_class_v is_empty_v common_type_t is_nothrow_move_constructible_v is_copy_constructible_v "
                   "is_void is_trivially_destructible_v is_final_v type_identity is_arithmetic_v is_invocable_r_v is_default_constructible_v bool_constant remove_extent_t",
    "typeindex": "type_index",
    "unordered_map": "unordered_map unordered_multimap",
    "unordered_set": "unordered_set unordered_multiset",
    "utility": "move forward exchange swap pair make_pair declval as_const in_place in_place_type index_sequence "
               "make_index_sequence index_sequence_for integer_sequence to_underlying cmp_less cmp_greater unreachable "
               "piecewise_construct in_range",
    "variant": "variant visit get_if holds_alternative monostate variant_size_v in_place_index variant_alternative_t",
    "vector": "vector",
}
# Maps words without std::, and functions that are called without it, to their headers.
PLAIN = {
    "cerrno": r"errno",
    "cinttypes": r"PRI[dux](8|16|32|64|PTR)",
    "climits": r"U?(INT|LONG|CHAR|SHRT|LLONG)_(MAX|MIN)|CHAR_BIT",
    "cfloat": r"(FLT|DBL)_(MAX|MIN|EPSILON)",
    "cstdarg": r"va_list",
    "cstddef": r"size_t",
    "cstdint": r"u?int(_fast|_least)?(8|16|32|64|ptr|max)_t|U?INT\d+_(MAX|MIN)",
    "cstdio": r"FILE",
}
CALLED = {
    "cassert": r"assert",
    "cstdio": r"f?printf|perror",
    "cstdlib": r"getenv|setenv|abort",
    "cstring": r"mem(cpy|set|cmp|move)|str(len|cmp|error)",
}
# These other headers must declare the same.
AS_WELL = {
    "fmt/format.h": "fmt/ranges.h fmt/chrono.h spdlog/spdlog.h",
    "cstddef": "cstdio cstdlib cstring ctime cwchar stddef.h",
    "cstdint": "stdint.h cinttypes",
    "exception": "stdexcept new",
    "initializer_list": "array deque list map optional set string unordered_map unordered_set utility vector",
    "ios": "fstream iomanip iostream sstream",
    "istream": "fstream iostream sstream",
    "ostream": "fstream iostream sstream",
    "ratio": "chrono",
}
# Builds with CHORALE_PRECOMPILED=ON have the headers of these libraries in every file.
LIBRARIES = {
    "fmt/format.h": r"\bfmt::(format|join|format_to|memory_buffer|to_string|print)\b",
    "gtest/gtest.h": r"\b(TEST|TEST_F|TEST_P|EXPECT_\w+|ASSERT_\w+)\(",
}
# Only the files of one folder may include these headers, for the given reason.
REFUSED = {
    "regex": ("tests", "its templates are parts of a program's public symbols, and those of PyTorch's libraries, which another compiler "
                       "made, crash ours: match by hand"),
}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"].*$', re.M)
HEADER_OF = {word: header for header, words in QUALIFIED.items() for word in words.split()}


def code(text):
    """Returns the text without comments, literals and includes."""
    text = re.sub(r'R"(\w*)\(.*?\)\1"', '""', INCLUDE.sub("", text), flags=re.S)
    return re.sub(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'""", " ", text, flags=re.S)


def used(text):
    """Maps each header that the code needs to a word that needs it."""
    text = code(text)
    needs = {}
    for word in re.findall(r"(?<!cuda::)\bstd::(\w+)", text):
        if word in HEADER_OF:
            needs.setdefault(HEADER_OF[word], "std::" + word)
    words = {table: "\n".join(sorted(set(re.findall(pattern, text)))) for table, pattern in
             (("plain", r"\w+"), ("called", r"(?<![\w.>:])(\w+)\("))}
    for header, pattern in LIBRARIES.items():
        if match := re.search(pattern, text):
            needs[header] = match[0].rstrip("(")
    for table, rows in (("plain", PLAIN), ("called", CALLED)):
        for header, pattern in rows.items():
            if match := re.search(rf"^({pattern})$", words[table], re.M):
                needs.setdefault(header, match[0])
    return needs


class Tree:
    def __init__(self, root):
        self.root = root
        self.text = {str(path): path.read_text() for folder in FOLDERS for path in sorted((root / folder).rglob("*"))
                     if path.suffix in SUFFIXES}
        self.includes = {path: set(INCLUDE.findall(text)) for path, text in self.text.items()}

        self.ours = {path: self.our_headers(path) for path in self.text}

    def our_headers(self, path):
        """Returns our headers that the file includes."""
        folders = [os.path.dirname(path), *(os.path.join(self.root, folder) for folder in INCLUDE_FOLDERS)]
        paths = ([os.path.normpath(os.path.join(folder, name)) for folder in folders] for name in self.includes[path])
        return {header for tried in paths if (header := next((one for one in tried if one in self.text), None))}

    def reached(self, path):
        """Returns everything that the file includes, directly or through our headers."""
        seen, left = set(), [path]
        while left:
            one = left.pop()
            if one not in seen:
                seen.add(one)
                left += self.ours[one]
        return set().union(*(self.includes[one] for one in seen))

    def missing(self, path):
        """Maps each header that the file must include to a word that needs it."""
        there = self.includes[path] if path.endswith(HEADERS) else self.reached(path)
        return {header: word for header, word in sorted(used(self.text[path]).items())
                if not there & {header, header.removeprefix("c") + ".h", *AS_WELL.get(header, "").split()}}


def mended(text, headers):
    """Returns the text with the headers sorted into those of the standard library."""
    lines = text.split("\n")
    standard = [at for at, line in enumerate(lines) if re.match(r"#include <[a-z_]+>", line)]
    if standard:
        first = last = standard[0]
        while lines[first - 1].startswith("#include <"):
            first -= 1
        while lines[last + 1].startswith("#include <"):
            last += 1
        for header in sorted(headers):
            line = f"#include <{header}>"
            at = next((at for at in range(first, last + 1) if lines[at] > line), last + 1)
            lines.insert(at, line)
            last += 1
        return "\n".join(lines)
    block = sorted(f"#include <{header}>" for header in headers)
    any_include = [at for at, line in enumerate(lines) if line.startswith("#include")]
    others = [at for at in any_include if lines[at].startswith("#include <")]
    if others:  # below the headers of other libraries
        at = others[-1] + 1
        lines[at:at] = ["", *block]
    elif any_include:
        at = any_include[0]
        own = lines[at + 1:at + 2] == [""] and len(any_include) > 1  # a source's own header comes first and alone
        at = at + 2 if own else at
        lines[at:at] = [*block, ""]
    else:
        at = next((at for at, line in enumerate(lines) if line and not line.startswith(("//", "#pragma"))), 0)
        lines[at:at] = [*block, ""]
    return "\n".join(lines)


def main():
    tree = Tree(pathlib.Path(sys.argv[1]).resolve())
    missing = {path: found for path in tree.text if (found := tree.missing(path))}
    if not tree.text:
        sys.exit(f"there are no sources in {tree.root}")
    for path, found in missing.items():
        if "--mend" in sys.argv[2:]:
            pathlib.Path(path).write_text(mended(tree.text[path], found))
            continue
        for header, word in found.items():
            print(f"{os.path.relpath(path, tree.root)}: uses {word} and does not include <{header}>")
    refused = [f"{os.path.relpath(path, tree.root)}: includes <{header}>: {why}"
               for path, headers in tree.includes.items() for header, (folder, why) in REFUSED.items()
               if header in headers and not path.startswith(str(tree.root / folder))]
    print("\n".join(refused), end="\n" if refused else "")
    if missing and "--mend" not in sys.argv[2:]:
        sys.exit("help: tests/includes.py . --mend adds the lines")
    sys.exit(1 if refused else 0)


main()
