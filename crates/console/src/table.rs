//! Aligned columns.

/// Rows as text: the first column to the left, the others to the right, two spaces between, `indent` before.
pub fn render(rows: &[Vec<String>], indent: usize) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |c: usize| rows.iter().filter_map(|r| r.get(c)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = " ".repeat(indent);
        for (c, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let fill = " ".repeat(width - cell.chars().count());
            match c {
                0 => line += &format!("{cell}{fill}"),
                _ => line += &format!("  {fill}{cell}"),
            }
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_end_below_each_other() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let text = super::render(&[row(["edge", "down", ""]), row(["a - b", "7", "12"])], 2);
        assert_eq!(text, "  edge   down\n  a - b     7  12\n");
    }
}
