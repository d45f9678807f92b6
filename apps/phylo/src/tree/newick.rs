//! Newick: text to a rooted tree of any degree, and back.
//!
//! Labels may be quoted (`'it''s'`), comments stand in brackets (and may be nested), white space is free. A label of an
//! inner node is kept as it is: most tools write supports there.

/// A Newick text that cannot be read, with the place in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct NewickError {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// What is wrong and what was expected.
    pub message: String,
}

/// A node of a [`Newick`] tree.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NewickNode {
    /// The node above; `None` for the root.
    pub parent: Option<usize>,
    /// The nodes below, in the order of the text.
    pub children: Vec<usize>,
    /// Name of a tip or label of an inner node, without quotes.
    pub label: Option<String>,
    /// Length of the branch above.
    pub length: Option<f64>,
    /// Line and column, from 1, where the node's own label or length begins, or its closing bracket.
    pub place: (usize, usize),
}

/// A rooted tree of any degree; node 0 is the root.
#[derive(Debug, Clone, PartialEq)]
pub struct Newick {
    /// All nodes, each after its parent.
    pub nodes: Vec<NewickNode>,
}

struct Reader<'a> {
    rest: std::str::Chars<'a>,
    line: usize,
    column: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.clone().next()
    }

    fn take(&mut self) -> Option<char> {
        let c = self.rest.next()?;
        if c == '\n' {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += 1;
        }
        Some(c)
    }

    fn error<T>(&self, message: impl Into<String>) -> Result<T, NewickError> {
        Err(NewickError { line: self.line, column: self.column, message: message.into() })
    }

    /// Past white space and comments.
    fn skip(&mut self) -> Result<(), NewickError> {
        while let Some(c) = self.peek() {
            if c.is_whitespace() {
                self.take();
            } else if c == '[' {
                let (line, column) = (self.line, self.column);
                let mut depth = 0;
                loop {
                    match self.take() {
                        Some('[') => depth += 1,
                        Some(']') => depth -= 1,
                        Some(_) => {}
                        None => {
                            let message = "the comment that begins here does not end: a ']' is missing".to_owned();
                            return Err(NewickError { line, column, message });
                        }
                    }
                    if depth == 0 {
                        break;
                    }
                }
            } else {
                break;
            }
        }
        Ok(())
    }

    fn label(&mut self) -> Result<Option<String>, NewickError> {
        let mut label = String::new();
        if self.peek() == Some('\'') {
            let (line, column) = (self.line, self.column);
            self.take();
            loop {
                match self.take() {
                    Some('\'') if self.peek() == Some('\'') => {
                        self.take();
                        label.push('\'');
                    }
                    Some('\'') => return Ok(Some(label)),
                    Some(c) => label.push(c),
                    None => {
                        let message = "the quoted name that begins here does not end".to_owned();
                        return Err(NewickError { line, column, message });
                    }
                }
            }
        }
        while let Some(c) = self.peek().filter(|&c| !c.is_whitespace() && !"()[]:;,'".contains(c)) {
            label.push(c);
            self.take();
        }
        Ok(Some(label).filter(|l| !l.is_empty()))
    }

    fn length(&mut self) -> Result<f64, NewickError> {
        let start = Reader { rest: self.rest.clone(), line: self.line, column: self.column };
        let mut text = String::new();
        while let Some(c) = self.peek().filter(|c| !c.is_whitespace() && !"()[]:;,".contains(*c)) {
            text.push(c);
            self.take();
        }
        match text.parse::<f64>() {
            Ok(length) if length.is_finite() => Ok(length),
            _ => start.error(format!("a branch length was expected after ':', found '{text}'")),
        }
    }
}

impl Newick {
    /// Reads one tree; nothing but white space and comments may follow its semicolon.
    ///
    /// # Errors
    /// With line and column: brackets that do not match, a length that is no number, tips without a name, text after the
    /// end.
    pub fn parse(text: &str) -> Result<Newick, NewickError> {
        let mut reader = Reader { rest: text.chars(), line: 1, column: 1 };
        let tree = Newick::read(&mut reader)?;
        reader.skip()?;
        match reader.peek() {
            None => Ok(tree),
            Some(c) => reader.error(format!("'{c}' after the end of the tree; one tree was expected")),
        }
    }

    /// Reads all trees of a text, one after the other.
    ///
    /// # Errors
    /// As [`Newick::parse`].
    pub fn parse_all(text: &str) -> Result<Vec<Newick>, NewickError> {
        let mut reader = Reader { rest: text.chars(), line: 1, column: 1 };
        let mut trees = Vec::new();
        reader.skip()?;
        while reader.peek().is_some() {
            trees.push(Newick::read(&mut reader)?);
            reader.skip()?;
        }
        Ok(trees)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Newick, NewickError> {
        let mut nodes = vec![NewickNode::default()];
        let mut at = 0;
        reader.skip()?;
        if reader.peek() != Some('(') {
            return reader.error("a tree in Newick format begins with '('");
        }
        loop {
            // A subtree is expected here.
            reader.skip()?;
            if reader.peek() == Some('(') {
                reader.take();
                at = child(&mut nodes, at);
                continue;
            }
            // A tip, or the label of what has just been closed.
            loop {
                nodes[at].place = (reader.line, reader.column);
                nodes[at].label = reader.label()?;
                if nodes[at].children.is_empty() && nodes[at].label.is_none() {
                    return reader.error("the name of a taxon or '(' was expected");
                }
                reader.skip()?;
                if reader.peek() == Some(':') {
                    reader.take();
                    reader.skip()?;
                    nodes[at].length = Some(reader.length()?);
                    reader.skip()?;
                }
                match (reader.peek(), nodes[at].parent) {
                    (Some(','), Some(parent)) => {
                        reader.take();
                        at = child(&mut nodes, parent);
                        break;
                    }
                    (Some(')'), Some(parent)) => {
                        reader.take();
                        at = parent;
                        reader.skip()?;
                    }
                    (Some(';'), None) => {
                        reader.take();
                        return Ok(Newick { nodes });
                    }
                    (Some(c), None) => {
                        return reader.error(format!("';' was expected at the end of the tree, found '{c}'"));
                    }
                    (None, None) => return reader.error("the tree does not end: ';' is missing"),
                    (Some(c), _) => return reader.error(format!("',' or ')' was expected, found '{c}'")),
                    (None, _) => return reader.error("the tree does not end: ')' is missing"),
                }
            }
        }
    }

    /// The tree with two branches below each node, three below the root at most: where there are more, nodes at branches of no
    /// length are put in. Gives the number of such nodes as well.
    pub fn resolved(&self) -> (Newick, usize) {
        let has_lengths = self.nodes.iter().any(|node| node.length.is_some());
        let mut nodes: Vec<NewickNode> = Vec::new();
        let mut added = 0;
        // (node of this tree, its branches from which one on, the node above)
        let mut todo = vec![(0, 0, None)];
        while let Some((of, from, parent)) = todo.pop() {
            let here = nodes.len();
            let mut node = match from {
                0 => self.nodes[of].clone(),
                _ => NewickNode {
                    length: has_lengths.then_some(0.0),
                    place: self.nodes[of].place,
                    ..NewickNode::default()
                },
            };
            added += usize::from(from > 0);
            node.parent = parent;
            node.children.clear();
            nodes.push(node);
            if let Some(parent) = parent {
                let parent: &mut NewickNode = &mut nodes[parent];
                parent.children.push(here);
            }
            let below = &self.nodes[of].children[from..];
            let most = if parent.is_none() { 3 } else { 2 };
            let direct = if below.len() <= most { below.len() } else { most - 1 };
            if direct < below.len() {
                todo.push((of, from + direct, Some(here)));
            }
            todo.extend(below[..direct].iter().rev().map(|&child| (child, 0, Some(here))));
        }
        (Newick { nodes }, added)
    }

    /// The tree as text, on one line with a semicolon. Lengths have as many digits as give the same number again; names
    /// are quoted where they need it.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        let mut stack = vec![(0, 0)];
        while let Some((node, child)) = stack.pop() {
            let n = &self.nodes[node];
            if child < n.children.len() {
                out.push(if child == 0 { '(' } else { ',' });
                stack.push((node, child + 1));
                stack.push((n.children[child], 0));
                continue;
            }
            if !n.children.is_empty() {
                out.push(')');
            }
            if let Some(label) = &n.label {
                out.push_str(&quoted(label));
            }
            if let Some(length) = n.length {
                out.push_str(&format!(":{length}"));
            }
        }
        out.push(';');
        out
    }
}

fn child(nodes: &mut Vec<NewickNode>, parent: usize) -> usize {
    let new = nodes.len();
    nodes.push(NewickNode { parent: Some(parent), ..NewickNode::default() });
    nodes[parent].children.push(new);
    new
}

/// A name as Newick wants it: in quotes where it contains a character with a meaning there.
fn quoted(name: &str) -> String {
    if name.is_empty() || name.contains(|c: char| c.is_whitespace() || "()[]:;,'".contains(c)) {
        format!("'{}'", name.replace('\'', "''"))
    } else {
        name.to_owned()
    }
}
