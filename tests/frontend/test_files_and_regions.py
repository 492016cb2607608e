"""Files that cannot be read, pragmas that do not match, options that name nothing."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from eatss.base.diagnostics import Diagnostic, InputError, Severity
from eatss.frontend import FrontendOptions, parse_file, parse_source
from eatss.polyhedral.scop import Scop

KERNEL = (
    "void f(int n, double *A) {\n#pragma scop\nfor (int i = 0; i < n; i++) A[i] = 0;\n"
    "#pragma endscop\n}\n"
)


def finding(call: Callable[[], object]) -> Diagnostic:
    with pytest.raises(InputError) as caught:
        call()
    return caught.value.diagnostics[0]


def finding_in(text: str, **options: object) -> Diagnostic:
    return finding(lambda: parse_source(text, options=FrontendOptions(**options)))  # type: ignore[arg-type]


# -- files ---------------------------------------------------------------------------------


def test_a_missing_file_is_a_finding(tmp_path: Path) -> None:
    assert finding(lambda: parse_file(tmp_path / "none.c")).code == "EATSS-F001"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_an_unreadable_file_is_a_finding(tmp_path: Path) -> None:
    path = tmp_path / "secret.c"
    path.write_text(KERNEL)
    path.chmod(0)
    assert finding(lambda: parse_file(path)).code == "EATSS-F001"


def test_a_name_that_is_no_path_is_a_finding() -> None:
    assert finding(lambda: parse_file("a\0b.c")).code == "EATSS-F001"


def test_a_directory_is_a_finding(tmp_path: Path) -> None:
    found = finding(lambda: parse_file(tmp_path))
    assert found.code == "EATSS-F001"
    assert "directory" in found.message


def test_a_device_is_a_finding() -> None:
    assert finding(lambda: parse_file(os.devnull)).code == "EATSS-F001"


def test_a_file_of_ten_megabytes_is_a_finding(tmp_path: Path) -> None:
    path = tmp_path / "large.c"
    path.write_bytes(KERNEL.encode() + b"/* x */\n" * (10 * 2**20 // 8))
    assert finding(lambda: parse_file(path)).code == "EATSS-F001"
    assert finding(lambda: parse_source(path.read_text())).code == "EATSS-F001"


@pytest.mark.parametrize("text", ["", " \n\t\n"])
def test_an_empty_file_is_a_finding(text: str) -> None:
    assert finding_in(text).code == "EATSS-F001"


def test_nul_bytes_are_a_finding_with_their_place() -> None:
    found = finding_in(KERNEL.replace("A[i]", "A[\0i]"))
    assert found.code == "EATSS-F001"
    assert found.span is not None
    assert (found.span.line, found.span.column) == (3, 31)


def test_bytes_that_are_not_utf8_are_a_finding_in_code(tmp_path: Path) -> None:
    path = tmp_path / "latin.c"
    path.write_bytes(KERNEL.encode().replace(b"A[i]", b"\xe4[i]"))
    found = finding(lambda: parse_file(path))
    assert found.code == "EATSS-F001"
    assert found.span is not None
    assert found.span.line == 3


def test_bytes_that_are_not_utf8_are_fine_in_comments_and_strings(tmp_path: Path) -> None:
    path = tmp_path / "latin.c"
    path.write_bytes(b'/* gr\xfc\xdfe */ char *s = "\xe4"; // \xff\n' + KERNEL.encode())
    assert len(parse_file(path).scops) == 1


def test_a_byte_order_mark_and_line_ends_of_windows_are_fine() -> None:
    scop = parse_source("\ufeff" + KERNEL.replace("\n", "\r\n")).scops[0]
    assert scop.statements[0].span.line == 3


def test_spans_name_the_file_as_given(tmp_path: Path) -> None:
    path = tmp_path / "k.c"
    path.write_text(KERNEL)
    scop = parse_file(path).scops[0]
    assert scop.file == str(path)
    assert str(scop.statements[0].span) == f"{path}:3:29"


# -- pragmas ---------------------------------------------------------------------------------


def test_no_region_is_a_finding() -> None:
    assert finding_in("int x;\n").code == "EATSS-F010"


@pytest.mark.parametrize(
    "text",
    [
        "void f(double *A) {\n#pragma scop\nA[0] = 0;\n}\n",
        "void f(double *A) {\nA[0] = 0;\n#pragma endscop\n}\n",
        "void f(double *A) {\n#pragma scop\n#pragma scop\nA[0] = 0;\n#pragma endscop\n}\n",
    ],
)
def test_unmatched_and_nested_pragmas_are_findings(text: str) -> None:
    assert finding_in(text).code == "EATSS-F010"


@pytest.mark.parametrize(
    "text",
    [
        "#pragma scop\nint x;\n#pragma endscop\nvoid f(double *A) { A[0] = 0; }\n",
        "void f(double *A) {\n#pragma scop\n{ A[0] = 0;\n#pragma endscop\n} }\n",
        "void f(double *A) {\n#pragma scop\nA[0] = 0; }\nvoid g(void) {\n#pragma endscop\n}\n",
    ],
)
def test_a_region_that_is_no_part_of_a_block_is_a_finding(text: str) -> None:
    assert finding_in(text).code == "EATSS-F010"


def test_a_region_without_statements_is_a_finding() -> None:
    assert finding_in("void f(void) {\n#pragma scop\n#pragma endscop\n}\n").code == "EATSS-F010"


def test_pragmas_in_comments_strings_and_inactive_code_do_not_count() -> None:
    noise = (
        "/*\n#pragma scop\n*/\n// \\\n#pragma scop\n"
        'char *s = "\\\n#pragma scop\\\n";\n#if 0\n#pragma scop\n#endif\n'
    )
    assert len(parse_source(noise + KERNEL).scops) == 1


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ('_Pragma("scop")', '_Pragma("endscop")'),
        ("#pragma \\\n scop", " # pragma  endscop /* end */"),
        ("#pra\\\ngma scop", "#pragma endscop"),
        ("BEGIN", "END"),
        ("PRAGMA(scop)", "PRAGMA( endscop )"),
    ],
)
def test_every_way_to_write_a_pragma_counts(opening: str, closing: str) -> None:
    macros = (
        '#define BEGIN _Pragma("scop")\n#define END _Pragma("endscop")\n'
        "#define PRAGMA(x) _Pragma(#x)\n"
    )
    text = KERNEL.replace("#pragma scop", opening).replace("#pragma endscop", closing)
    assert len(parse_source(macros + text).scops[0].statements) == 1


def test_a_pragma_under_a_macro_counts_when_the_macro_is_set() -> None:
    text = KERNEL.replace("#pragma scop", "#ifdef ON\n#pragma scop\n#endif").replace(
        "#pragma endscop", "#ifdef ON\n#pragma endscop\n#endif"
    )
    assert finding_in(text).code == "EATSS-F010"
    assert len(parse_source(text, options=FrontendOptions(defines=("ON",))).scops) == 1


def test_a_pragma_of_a_macro_from_a_header_is_not_passed_over_in_silence(tmp_path: Path) -> None:
    (tmp_path / "marks.h").write_text('#define BEGIN _Pragma("scop")\n')
    text = '#include "marks.h"\n' + KERNEL + KERNEL.replace("#pragma scop", "BEGIN")
    options = FrontendOptions(include_dirs=(str(tmp_path),))
    with pytest.raises(InputError) as caught:
        parse_source(text.replace("void f", "void g", 1), options=options)
    assert caught.value.code == "EATSS-F010"


def test_other_pragmas_do_not_matter() -> None:
    text = KERNEL.replace("for (", "#pragma omp parallel for\nfor (")
    result = parse_source(text)
    assert len(result.scops) == 1
    assert result.warnings == ()


TWO = KERNEL + KERNEL.replace("void f", "void g").replace(
    "#pragma endscop", "#pragma endscop\n;\n#pragma scop\nA[n] = 1;\n#pragma endscop"
)


def test_several_regions_come_in_source_order() -> None:
    scops = parse_source(TWO).scops
    assert [(s.function, s.index) for s in scops] == [("f", 0), ("g", 1), ("g", 2)]
    assert [s.statements[0].name for s in scops] == ["S0"] * 3


def test_a_region_inside_a_loop_has_the_counter_as_parameter(only: Callable[[str], Scop]) -> None:
    scop = only(
        "void f(int n, double *A) { for (int t = 0; t < 9; t++) {\n#pragma scop\n"
        "A[t] = 0;\n#pragma endscop\n} }\n"
    )
    assert scop.parameters == ("t",)


def test_regions_are_chosen_by_function_and_by_number() -> None:
    def chosen(**options: object) -> list[int]:
        return [s.index for s in parse_source(TWO, options=FrontendOptions(**options)).scops]  # type: ignore[arg-type]

    assert chosen(function="g") == [1, 2]
    assert chosen(scop=2) == [2]
    assert chosen(scop=1, function="g") == [1]


def test_a_choice_that_names_nothing_is_a_finding() -> None:
    assert finding_in(TWO, function="h").code == "EATSS-F010"
    assert finding_in(TWO, scop=3).code == "EATSS-F010"
    assert finding_in(TWO, scop=-1).code == "EATSS-F010"
    assert finding_in(TWO, scop=0, function="g").code == "EATSS-F010"


def test_an_error_in_a_region_that_was_not_asked_for_does_not_matter() -> None:
    text = TWO.replace("A[n] = 1", "A[n * n] = A[(int) A[0]]")
    assert finding_in(text).code == "EATSS-F012"
    assert len(parse_source(text, options=FrontendOptions(function="f")).scops) == 1


# -- options ---------------------------------------------------------------------------------


def test_a_parameter_value_fixes_the_context() -> None:
    scop = parse_source(KERNEL, options=FrontendOptions(parameter_values=(("n", 40),))).scops[0]
    assert scop.parameters == ("n",)
    assert scop.context.is_equal(
        type(scop.context).read_from_str(scop.isl_context, "[n] -> {:n=40}")
    )


def test_a_value_for_no_parameter_is_a_finding() -> None:
    assert finding_in(KERNEL, parameter_values=(("m", 4),)).code == "EATSS-F049"


def test_options_that_make_no_sense_are_findings() -> None:
    assert finding_in(KERNEL, defines=("2x=3",)).code == "EATSS-F049"
    assert finding_in(KERNEL, parameter_values=(("n", 4), ("n", 5))).code == "EATSS-F049"
    vla = "void f(int n, double A[9][n]) {\n#pragma scop\nA[0][0] = 0;\n#pragma endscop\n}\n"
    assert finding_in(vla, parameter_values=(("n", 0),)).code == "EATSS-F049"


def test_macros_and_include_folders_reach_clang(tmp_path: Path) -> None:
    (tmp_path / "sizes.h").write_text("#define M (N / 2)\n")
    text = '#include "sizes.h"\n' + KERNEL.replace("i < n", "i < M")
    options = FrontendOptions(include_dirs=(str(tmp_path),), defines=("N=10",))
    scop = parse_source(text, options=options).scops[0]
    assert scop.statements[0].domain.count_val().to_python() == 5


# -- clang's errors ----------------------------------------------------------------------------


def test_missing_system_headers_do_not_matter_outside_the_region() -> None:
    text = (
        "#include <mpi.h>\n#include <stdio.h>\n#include <sys/resource.h>\n"
        'MPI_Comm world;\nvoid g(void) { MPI_Status s; undeclared(3, &s); printf("x"); }\n'
    )
    result = parse_source(text + KERNEL)
    assert result.warnings == ()


def test_a_missing_header_is_named_where_the_region_depends_on_it() -> None:
    found = finding_in("#include <sizes.h>\n" + KERNEL.replace("i < n", "i < SIZE"))
    assert found.code == "EATSS-F007"
    assert found.hint is not None
    assert "sizes.h" in found.hint


def test_a_missing_header_is_named_where_a_macro_of_it_is_missing() -> None:
    found = finding_in(
        "#include <macros.h>\n" + KERNEL.replace("double *", "double ARRAY(W, 9), *")
    )
    assert found.code == "EATSS-F007"
    assert found.hint is not None
    assert "macros.h" in found.hint


def test_a_missing_header_of_the_users_own_is_a_warning() -> None:
    result = parse_source('#include "sizes.h"\n' + KERNEL)
    assert [w.code for w in result.warnings] == ["EATSS-F091"]
    assert result.warnings[0].severity is Severity.WARNING


def test_an_array_of_an_unknown_type_is_refused() -> None:
    assert finding_in("#include <r.h>\n" + KERNEL.replace("double", "real_t")).code == "EATSS-F007"
    text = "typedef unknown_t real_t;\n" + KERNEL.replace("double", "real_t")
    assert finding_in(text).code == "EATSS-F007"


def test_a_syntax_error_elsewhere_is_reported_with_clangs_words() -> None:
    found = finding_in("int broken( { ;\n" + KERNEL)
    assert found.code == "EATSS-F007"
    assert found.span is not None
    assert found.span.line == 1


def test_a_size_that_changes_after_the_declaration_is_refused() -> None:
    text = (
        "void f(int n) { double A[n][n]; n = n - 1;\n#pragma scop\n"
        "for (int i = 0; i < n; i++) A[i][0] = 0;\n#pragma endscop\n}\n"
    )
    assert finding_in(text).code == "EATSS-F031"


@pytest.mark.parametrize(
    "setting",
    ["double *p = A;", "double *p; p = A + 1;", "double *q = A, *p = q;", "double *p = &A[3];"],
)
def test_the_same_array_under_two_names_is_refused(setting: str) -> None:
    text = (
        f"void f(int n, double *A) {{ {setting}\n#pragma scop\n"
        "for (int i = 1; i < n; i++) A[i] = p[i - 1];\n#pragma endscop\n}\n"
    )
    assert finding_in(text).code == "EATSS-F024"


def test_a_pointer_to_a_parameter_of_the_region_is_refused() -> None:
    text = (
        "void f(int n) { int *p = &n;\n#pragma scop\n"
        "for (int i = 0; i < n; i++) p[i] = 0;\n#pragma endscop\n}\n"
    )
    assert finding_in(text).code == "EATSS-F024"


def test_distinct_parameters_and_fresh_memory_are_taken_not_to_overlap() -> None:
    text = (
        "#include <stdlib.h>\nvoid f(int n, double *A, double *B) {\n"
        "double *p = (double *) malloc(n * sizeof *p), (*q)[9]; q = calloc(n, 72);\n#pragma scop\n"
        "for (int i = 0; i < n; i++) A[i] = B[i] + p[i] + q[i][0];\n#pragma endscop\n}\n"
    )
    assert len(parse_source(text).scops[0].arrays) == 4


# -- codes and threads ---------------------------------------------------------------------------


def test_threads_share_nothing() -> None:
    results: list[str] = []

    def work(size: int) -> None:
        for _ in range(5):
            scop = parse_source(KERNEL.replace("< n", f"< {size}")).scops[0]
            results.append(f"{size} {scop.statements[0].domain.count_val()}")

    threads = [threading.Thread(target=work, args=(size,)) for size in (3, 4, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == sorted(f"{k} {k}" for k in (3, 4, 5) for _ in range(5))


def test_an_error_directive_is_an_error_in_its_own_words() -> None:
    text = "#ifndef SIZE\n#error SIZE is missing: give -D SIZE=100\n#endif\n" + KERNEL
    with pytest.raises(InputError) as caught:
        parse_source(text)
    (finding,) = caught.value.diagnostics
    assert finding.code == "EATSS-F007"
    assert finding.message == "#error SIZE is missing: give -D SIZE=100"
    assert finding.span is not None
    assert finding.span.line == 2
    assert parse_source(text, options=FrontendOptions(defines=("SIZE=100",))).scops


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("", "#if 1\n", "unterminated conditional directive"),
        ("#endif\n", "", "#endif without #if"),
        ("", "/* to the end", "unterminated /* comment"),
    ],
)
def test_a_condition_or_comment_that_is_left_open_is_an_error(
    before: str, after: str, message: str
) -> None:
    with pytest.raises(InputError) as caught:
        parse_source(before + KERNEL + after)
    assert [(d.code, d.message) for d in caught.value.diagnostics] == [("EATSS-F007", message)]


def test_a_file_that_includes_itself_is_said_to(tmp_path: Path) -> None:
    (tmp_path / "one.h").write_text('#include "two.h"\n')
    (tmp_path / "two.h").write_text('#include "one.h"\n')
    (tmp_path / "self.c").write_text('#include "self.c"\n' + KERNEL)
    (tmp_path / "main.c").write_text('#include "one.h"\n' + KERNEL)
    (tmp_path / "once.c").write_text(
        '#ifndef ONCE\n#define ONCE\n#include "once.c"\n' + KERNEL + "#endif\n"
    )
    said = {}
    for name in ("self.c", "main.c"):
        with pytest.raises(InputError) as caught:
            parse_file(tmp_path / name)
        said[name] = caught.value.diagnostics[0]
    assert said["self.c"].message == "'self.c' includes itself"
    assert said["main.c"].message == "'one.h' includes itself through 'two.h'"
    assert {finding.code for finding in said.values()} == {"EATSS-F009"}
    assert parse_file(tmp_path / "once.c").scops
