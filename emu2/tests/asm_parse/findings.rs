//! The form of findings.

use super::*;
use emu2::error::Code;

#[test]
fn findings_look_like_rustcs() {
    let text = "# x\niadd $lm0v $ln1v $lr0v # comment\n";
    let error = assemble(text, "test.vsm", &spec("mncore2"), Policy::Check).unwrap_err();
    let expected = "\
error[A0204]: address 1 is no multiple of 2, the words of `$ln`
 --> test.vsm:2:12
  |
2 | iadd $lm0v $ln1v $lr0v # comment
  |            ^^^^ the address is not aligned to the access
  |
  = help: use `$ln0` or `$ln2`";
    assert_eq!(error.to_string(), expected);
    let record = serde_json::to_string(&records(&error.name, &error.text, &error.diagnostics)[0]).unwrap();
    let expected =
        "{\"file\":\"test.vsm\",\"line\":2,\"column\":12,\"end_line\":2,\"end_column\":16,\"code\":\"A0204\",\
                    \"severity\":\"error\",\"message\":\"address 1 is no multiple of 2, the words of `$ln`\",\
                    \"help\":\"use `$ln0` or `$ln2`\"}";
    assert_eq!(record, expected);
}

/// The finding about a giant line is short, whatever the line holds, and names the right place.
#[test]
fn findings_of_giant_lines_are_short() {
    let spec = spec("mini");
    let many = |text: &str| text.repeat(200_000 / text.len());
    let table = [
        (many("x"), "A0102", 1),
        (many("é"), "A0101", 1),
        (format!("lpassa {}", many("$")), "A0201", 8),
        (format!("lpassa {}", many("$lr0 ")), "A0209", 328),
        (format!("lpassa $lr[{}0] $ln0", many("0,")), "A0206", 11),
        (format!("imm i\"{}\" $lr0", many("9")), "A0304", 5),
        (format!("d get{} $lm0 1", many("x")), "A0501", 3),
        (format!("lpassa{}$lr0 $lq0", many(" ")), "A0201", 200_012),
        (format!("nop/{}", many("9")), "A0104", 5),
        (format!("mask{} 1", many("q")), "A0213", 5),
        (many("zero $lr0;"), "A0601", 11),
        (many("x;"), "A0102", 1),
    ];
    for (text, code, column) in table {
        let error = assemble(&text, "test.vsm", &spec, Policy::Check).unwrap_err();
        let first = &records(&error.name, &error.text, &error.diagnostics)[0];
        assert_eq!((first.code, first.line, first.column), (code, 1, column), "{}", &first.message);
        assert!(error.diagnostics.iter().all(|d| d.message.len() + d.help.len() < 800), "{code}");
        let shown = error.to_string();
        assert!(shown.len() < 1000 * error.diagnostics.len(), "{code}: {} bytes", shown.len());
        assert!(shown.contains(&format!("test.vsm:1:{column}")), "{code} {column}: {shown}");
    }
}

/// Tabs and carriage returns do not move the underline, and nothing of the source reaches the terminal as a control
/// character.
#[test]
fn underlines_keep_their_places() {
    let text = "nop\r\n\tiadd\t$lm0v $lé\x1b[31m $lr0v\r\n";
    let error = assemble(text, "test.vsm", &spec("mncore2"), Policy::Check).unwrap_err();
    let shown = error.to_string();
    assert!(shown.contains("\n2 |  iadd $lm0v $lé [31m $lr0v\n  |             ^^"), "{shown}");
    assert!(!shown.contains(['\t', '\r', '\x1b']), "{shown}");
}

#[test]
fn suggestions() {
    let table = [
        ("lpasa $lm0 $ln0", "did you mean `lpassa`?"),
        ("FVMUL $lm0 $ln0 $lr0", "did you mean `fvmul`?"),
        ("lpassa $alf $ln0", "did you mean `$aluf`?"),
        ("lpassa $lm0 $nowirte", "did you mean `$nowrite`?"),
        ("lpassa $lm0 $omar1", "did you mean `$omr`?"),
        ("maskx 1", "use m, n, r, s, t, k"),
    ];
    for (text, help) in table {
        let error = assemble(text, "test.vsm", &spec("mncore2"), Policy::Check).unwrap_err();
        assert_eq!(error.diagnostics[0].help, help, "{text}");
    }
}

/// One run gives several findings, in source order, and at most a certain number.
#[test]
fn many_findings() {
    let spec = spec("mncore2");
    let error = assemble("iad $lm0 $lr0; lpassa $lm1 $ln0\nnop/x\n", "test.vsm", &spec, Policy::Check).unwrap_err();
    let codes: Vec<_> = error.diagnostics.iter().map(|d| d.code).collect();
    assert_eq!(codes, [Code::UnknownMnemonic, Code::Misaligned, Code::NumberExpected]);
    let text = "lpassa $aluf $lm1\n".repeat(1000) + &"lpassa $mauf $lr4094v\n".repeat(10);
    let error = assemble(&text, "test.vsm", &spec, Policy::Check).unwrap_err();
    let last = error.diagnostics.last().unwrap();
    assert_eq!((error.diagnostics.len(), last.code), (101, Code::TooMany));
    assert_eq!(last.message, "and 910 more errors");
}
