//! Finds the known word closest to an unknown one, for "did you mean".

/// Words longer than this are not compared.
const MAX_LENGTH: usize = 24;

/// The candidate closest to `word`, if it is close enough. A tie goes to the alphabetically first one.
pub(super) fn closest<'c>(word: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    if word.is_empty() || word.len() > MAX_LENGTH {
        return None;
    }
    let word = word.to_ascii_lowercase();
    let limit = word.len().div_ceil(3).min(3);
    candidates
        .filter(|c| c.len() <= MAX_LENGTH && c.len().abs_diff(word.len()) <= limit)
        .map(|c| (distance(word.as_bytes(), c.as_bytes()), c))
        .filter(|(d, _)| *d <= limit && *d < word.len())
        .min()
        .map(|(_, c)| c)
}

/// The number of insertions, deletions, substitutions and swaps of neighbours that lead from `a` to `b`.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut before = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1; b.len() + 1];
        for j in 0..b.len() {
            let substituted = last[j] + usize::from(a[i] != b[j]);
            row[j + 1] = substituted.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                row[j + 1] = row[j + 1].min(before[j - 1] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        let known = ["lpassa", "ipassa", "iadd", "isub", "fvfma", "nop", "dvfmau"];
        let table = [
            ("lpasa", Some("lpassa")),
            ("LPASSA", Some("lpassa")),
            ("fvmfa", Some("fvfma")),
            ("iad", Some("iadd")),
            ("noop", Some("nop")),
            ("dvfma", Some("dvfmau")),
            ("quux", None),
            ("", None),
        ];
        for (word, expected) in table {
            assert_eq!(closest(word, known.into_iter()), expected, "{word}");
        }
    }
}
