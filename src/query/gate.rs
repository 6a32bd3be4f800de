//! What is let in: one query, of a sane size, without table functions.

use std::ops::ControlFlow;

use datafusion::sql::parser::{DFParser, Statement as EngineStatement};
use datafusion::sql::sqlparser::ast::{
    Query as QueryAst, SetExpr, Statement, TableFactor, Visit as _, Visitor,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use crate::error::{Error, Result};
use crate::identity::Digest;

/// The engine plans by recursion: 20,000 chained operators have killed its process, 5,000 have not.
const MAX_OPERATORS: usize = 2_000;

/// Longer text than this is generated, and is data rather than logic.
const MAX_BYTES: usize = 256 << 10;

/// SQL that passed the gate.
#[derive(Debug, Clone)]
pub struct Query {
    text: String,
    canonical: String,
    statement: EngineStatement,
}

impl Query {
    /// Reads SQL that must be one query. `name` is the file, for errors.
    ///
    /// # Errors
    /// `Invalid`, with what was found and what to write instead.
    pub fn parse(text: &str, name: &str) -> Result<Self> {
        parse(text).map_err(|error| error.with("sql", name))
    }

    /// The SQL as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The same without comments, with one spacing and spelling.
    pub fn canonical(&self) -> &str {
        &self.canonical
    }

    /// The digest of the canonical text.
    pub fn digest(&self) -> Digest {
        Digest::of_bytes(self.canonical.as_bytes())
    }

    pub(super) fn statement(&self) -> &EngineStatement {
        &self.statement
    }
}

fn parse(text: &str) -> Result<Query> {
    check_size(text)?;
    let mut statements = DFParser::parse_sql(text).map_err(|error| {
        Error::invalid("the SQL cannot be read").because(error.strip_backtrace())
    })?;
    let (Some(statement), None) = (statements.pop_front(), statements.pop_front()) else {
        return Err(Error::invalid("the SQL must be exactly one statement")
            .hint("write one SELECT; use WITH for intermediate steps"));
    };
    let EngineStatement::Statement(inner) = &statement else { return Err(not_a_query(text)) };
    let Statement::Query(query) = inner.as_ref() else { return Err(not_a_query(text)) };
    let refused = query.visit(&mut Refusals);
    if let ControlFlow::Break(error) = refused {
        return Err(error);
    }
    Ok(Query { text: text.to_owned(), canonical: query.to_string(), statement })
}

fn check_size(text: &str) -> Result<()> {
    if text.len() > MAX_BYTES {
        return Err(Error::invalid(format!(
            "the SQL has {} bytes, at most {MAX_BYTES} are read",
            text.len()
        ))
        .hint("put long lists of values into a source file and join it"));
    }
    let tokens = Tokenizer::new(&GenericDialect {}, text)
        .tokenize()
        .map_err(|error| Error::invalid("the SQL cannot be read").because(error.to_string()))?;
    let operators = tokens.iter().filter(|token| is_operator(token)).count();
    if operators > MAX_OPERATORS {
        return Err(Error::invalid(format!(
            "the SQL has {operators} operators, at most {MAX_OPERATORS} are planned safely"
        ))
        .hint("put the values into a source file and join it"));
    }
    Ok(())
}

fn is_operator(token: &Token) -> bool {
    match token {
        Token::Plus | Token::Minus | Token::Mul | Token::Div | Token::Mod | Token::StringConcat => {
            true
        }
        Token::Word(word) => matches!(
            word.value.to_ascii_uppercase().as_str(),
            "AND" | "OR" | "UNION" | "EXCEPT" | "INTERSECT" | "NOT"
        ),
        _ => false,
    }
}

fn not_a_query(text: &str) -> Error {
    let verb = text.split_whitespace().find(|word| !word.starts_with("--")).unwrap_or_default();
    Error::invalid(format!("the SQL is no query: it begins with {verb:?}"))
        .hint("write one SELECT: its rows become the partition, and nothing else can be written")
}

struct Refusals;

impl Visitor for Refusals {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &QueryAst) -> ControlFlow<Error> {
        let writes = match query.body.as_ref() {
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
                true
            }
            SetExpr::Select(select) => select.into.is_some(),
            _ => false,
        };
        if writes || !query.locks.is_empty() {
            return ControlFlow::Break(
                Error::invalid("the SQL writes or locks").hint("a transformation only reads"),
            );
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Error> {
        let function = match factor {
            TableFactor::Table { name, args: Some(_), .. } | TableFactor::Function { name, .. } => {
                Some(name.to_string())
            }
            TableFactor::TableFunction { expr, .. } => Some(expr.to_string()),
            _ => None,
        };
        match function {
            Some(name) => ControlFlow::Break(
                Error::invalid(format!("the SQL reads from the table function {name}"))
                    .hint("only declared sources can be read, because only they are pinned"),
            ),
            None => ControlFlow::Continue(()),
        }
    }
}
