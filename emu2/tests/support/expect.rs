//! The first line of files that must be refused: `# expect: ...`.

use emu2::asm::Record;

/// The text after `# expect: ` on the first line.
pub(crate) fn expected(bytes: &[u8]) -> Result<String, String> {
    let text = String::from_utf8_lossy(bytes);
    let first = text.lines().next().unwrap_or_default();
    Ok(first.strip_prefix("# expect: ").ok_or("no `# expect:` line")?.to_string())
}

/// Whether `found` is the finding in the first line of a source:
/// `# expect: [warning] <code> line <n> column <n> [among others]`. The name of the file must be the code.
pub(crate) fn check(name: &str, bytes: &[u8], found: &[Record]) -> Result<(), String> {
    let line = expected(bytes)?;
    let (expected, among) = match line.strip_suffix(" among others") {
        Some(rest) => (rest, true),
        None => (line.as_str(), false),
    };
    let (expected, severity) = match expected.strip_prefix("warning ") {
        Some(rest) => (rest, "warning"),
        None => (expected, "error"),
    };
    if !name.starts_with(expected.split(' ').next().unwrap()) {
        return Err("the file is named after another code".to_string());
    }
    let text = |r: &Record| format!("{} line {} column {}", r.code, r.line, r.column);
    let right = |r: &Record| text(r) == expected && r.severity == severity && !r.help.is_empty();
    if if among { found.iter().any(right) } else { found.len() == 1 && found.iter().all(right) } {
        return Ok(());
    }
    let got: Vec<String> = found.iter().map(|r| format!("{} {}: {}", r.severity, text(r), r.message)).collect();
    Err(format!("expected {severity} {expected}, found {got:#?}"))
}
