//! A document, taken apart.

use std::path::{Path, PathBuf};

use crate::place::Server;

/// What a block may be.
const LANGUAGES: [&str; 9] = ["", "json", "python", "rust", "sh", "sql", "text", "toml", "yaml"];

/// A document of this repository.
pub(crate) struct Document {
    /// From the root of the repository.
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) blocks: Vec<Block>,
    /// What is wrong with its blocks.
    pub(crate) problems: Vec<String>,
}

/// A fenced block.
pub(crate) struct Block {
    pub(crate) language: String,
    /// What follows it in the info string.
    pub(crate) marks: Vec<String>,
    /// The comment on the line before it.
    pub(crate) comment: Option<String>,
    pub(crate) text: String,
    /// Where it begins, counted from one.
    pub(crate) line: usize,
}

/// Where the repository is.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

impl Document {
    /// Those at the root, and all that are in `docs`.
    pub(crate) fn all() -> Vec<Self> {
        let root = root();
        let mut paths: Vec<PathBuf> = entries(&root);
        let mut directories = vec![root.join("docs")];
        while let Some(directory) = directories.pop() {
            let inside = entries(&directory);
            directories.extend(inside.iter().filter(|path| path.is_dir()).cloned());
            paths.extend(inside);
        }
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
        paths.sort();
        assert!(paths.len() > 10, "documents are missing: {paths:?}");
        paths.iter().map(|path| Self::read(&root, path)).collect()
    }

    fn read(root: &Path, path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        Self::new(path.strip_prefix(root).unwrap().to_str().unwrap(), &text)
    }

    pub(crate) fn new(path: &str, text: &str) -> Self {
        let (blocks, problems) = blocks(path, text);
        Self { path: path.to_owned(), text: text.to_owned(), blocks, problems }
    }

    /// Whether it has something to run there.
    pub(crate) fn is_for(&self, server: Server) -> bool {
        self.blocks.iter().any(|block| block.server() == Some(server))
    }

    /// Its name without folders and ending.
    pub(crate) fn stem(&self) -> &str {
        Path::new(&self.path).file_stem().unwrap().to_str().unwrap()
    }

    /// Its text outside of blocks, line by line.
    pub(crate) fn prose(&self) -> Vec<&str> {
        let mut is_inside = false;
        let outside = |line: &&str| {
            let is_fence = line.starts_with("```");
            is_inside ^= is_fence;
            !is_inside && !is_fence
        };
        self.text.lines().filter(outside).collect()
    }
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn blocks(path: &str, text: &str) -> (Vec<Block>, Vec<String>) {
    let mut blocks: Vec<Block> = Vec::new();
    let (mut is_inside, mut before) = (false, "");
    for (index, line) in text.lines().enumerate() {
        match line.strip_prefix("```") {
            Some(info) if !is_inside => {
                let mut words = info.split_whitespace().map(str::to_owned);
                let language = words.next().unwrap_or_default();
                let comment = before.strip_prefix("<!--").and_then(|rest| rest.strip_suffix("-->"));
                let comment = comment.map(|comment| comment.trim().to_owned());
                let (marks, text, line) = (words.collect(), String::new(), index + 1);
                blocks.push(Block { language, marks, comment, text, line });
                is_inside = true;
            }
            Some(_) => is_inside = false,
            None if is_inside => {
                let block = blocks.last_mut().unwrap();
                block.text.push_str(line);
                block.text.push('\n');
            }
            None => {}
        }
        before = line.trim();
    }
    let mut problems: Vec<String> = blocks
        .iter()
        .filter_map(|block| Some(format!("{path}:{}: {}", block.line, block.problem()?)))
        .collect();
    if is_inside {
        problems.push(format!("{path}: its last block has no end"));
    }
    (blocks, problems)
}

impl Block {
    /// Why nobody would know what to do with it.
    fn problem(&self) -> Option<String> {
        let language = &self.language;
        if !LANGUAGES.contains(&language.as_str()) {
            return Some(format!("nobody knows how to run {language:?}: give one of {LANGUAGES:?}"));
        }
        let unknown = self.marks.iter().find(|mark| {
            *mark != "no-run" && !Server::ALL.iter().any(|server| server.name() == mark.as_str())
        });
        if let Some(unknown) = unknown {
            return Some(format!("{unknown:?} means nothing behind {language:?}"));
        }
        let is_silent = self.marks.iter().any(|mark| mark == "no-run") && self.no_run().is_none();
        is_silent.then(|| "it is not run, and no comment before it says why".to_owned())
    }

    /// Why it is not run.
    pub(crate) fn no_run(&self) -> Option<&str> {
        let reason = self.comment.as_deref()?.strip_prefix("no-run:")?.trim();
        (self.marks.iter().any(|mark| mark == "no-run") && !reason.is_empty()).then_some(reason)
    }

    /// Where it is run, if it is.
    pub(crate) fn server(&self) -> Option<Server> {
        let is_run =
            matches!(self.language.as_str(), "sh" | "toml" | "sql" | "python") && self.no_run().is_none();
        let named =
            || Server::ALL.into_iter().find(|server| self.marks.iter().any(|mark| mark == server.name()));
        is_run.then(|| named().unwrap_or(Server::Sqlite))
    }
}
