//! Making a plan: everything looked at, nothing of the dataset touched, the SQL not run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use chrono::{DateTime, NaiveDate, Utc};

use super::checks::{check_checks, read_rules};
use super::recipe::{self, Ingredients};
use super::{
    BasePartition, Decides, Estimate, FORMAT, Kept, PinnedSource, Plan, PlannedPartition,
    Provenance, SourcePin, Terms, pin, saved,
};
use crate::calendar::{Calendar, Interval, Range};
use crate::dataset::{Dataset, Definition, Partitions, Policy, PolicyField, Version};
use crate::env::Env;
use crate::error::{Error, Result};
use crate::identity::Digest;
use crate::parquet_file::{groups_in_window, nulls_by_footer};
use crate::query::{Parameters, PinnedTable, Prepared, Query, check_output};
use crate::spec::{Checks, Quantity, Rules, Spec, Statistic, Unit};
use crate::storage::Stores;

/// How to plan.
#[derive(Debug, Clone)]
pub struct PlanOptions {
    /// The range, when the command line says it.
    pub range: Option<Range>,
    /// Who plans.
    pub actor: String,
    /// Whether the plan is stored with the dataset.
    pub save: bool,
}

/// A plan with what is known of it besides.
#[derive(Debug)]
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// The dataset it is about.
    pub dataset: Dataset,
    /// The version current while planning.
    pub base: Version,
    /// Results of equal recipe, by partition name.
    pub kept: BTreeMap<String, Kept>,
    /// Its batches.
    pub batches: Vec<Vec<usize>>,
    /// Objects of the sources that are not used.
    pub refused: Vec<(String, crate::dataset::RefusedObject)>,
    /// Sums that the engine lets wrap around silently.
    pub wrapping: Vec<String>,
    /// Rows of sources that have no time, by source: no partition sees them.
    pub timeless: BTreeMap<String, u64>,
    /// Whether the plan was not there before.
    pub is_new: bool,
}

/// Plans a spec.
///
/// # Errors
/// `Invalid` for anything in the spec, the SQL or the sources that does not fit together.
pub async fn build(
    stores: &Stores,
    spec: &Spec,
    options: PlanOptions,
    env: &Env,
) -> Result<Planned> {
    let dataset = Dataset::at(stores, &spec.dataset.url, &spec.folder)?;
    let base = dataset.head().await?;
    let policy = dataset.policy(&base).await?;
    let definition = base.manifest.definition.clone();
    let calendar = agree(spec, &definition)?;
    let intervals = calendar.partitions(&range_of(spec, options.range.as_ref())?)?;
    let (sql_path, query) = read_sql(spec)?;

    let mut sources = BTreeMap::new();
    for (name, source) in &spec.sources {
        let pinned = pin::pin_source(stores, &spec.folder, name, source, &calendar).await?;
        sources.insert(name.clone(), pinned);
    }
    let Some(first) = intervals.first() else { return Err(Error::internal("an empty range")) };
    let as_of = spec.as_of()?;
    let as_of_or_epoch = as_of.unwrap_or(DateTime::UNIX_EPOCH);
    let parameters =
        Parameters::of(first, &definition.partition, as_of_or_epoch, &spec.parameters)?;
    let tables = empty_tables(&sources)?;
    let name = sql_path.display().to_string();
    let prepared = Prepared::new(&query, &tables, &parameters)
        .await
        .and_then(|prepared| check_output(&prepared.output, &definition).map(|()| prepared))
        .map_err(|error| error.with("sql", &name))?;
    check_as_of(as_of, &prepared)?;
    let rules = read_rules(spec)?;
    check_checks(spec, &rules, &tables, (&definition, &intervals), &parameters).await?;
    measure_reads(&mut sources, &prepared);

    let pins: BTreeMap<String, SourcePin> =
        sources.iter().map(|(name, source)| (name.clone(), source.pin.clone())).collect();
    let context = Context {
        query: &query,
        prepared: &prepared,
        definition: &definition,
        spec,
        rules: &rules,
        pins: &pins,
        production: &dataset.partitions(&base).await?,
    };
    let (partitions, estimates) = plan_all(&intervals, &context, as_of_or_epoch, &sources)?;
    let decides =
        Decides { dataset: base.manifest.dataset.clone(), as_of, partitions, ..context.decides() };
    let plan = Plan {
        format: FORMAT,
        id: Digest::of_json(&decides)?,
        decides,
        terms: terms_of(spec)?,
        provenance: Provenance::of(&sql_path, &options.actor),
        estimates,
        created_at: env.now(),
        base_version: base.number(),
        dataset_url: dataset.root().url().to_owned(),
    };
    check_policy(&plan, &policy)?;
    let batches = plan.batches()?;
    let kept = find_kept(&dataset, &plan).await?;
    let is_new = if options.save { saved::save(&dataset, &plan, env).await? } else { true };
    let timeless = timeless(&sources);
    let refused = sources
        .into_iter()
        .flat_map(|(name, source)| source.refused.into_iter().map(move |one| (name.clone(), one)))
        .collect();
    let wrapping = prepared.wrapping;
    Ok(Planned { plan, dataset, base, kept, batches, refused, wrapping, timeless, is_new })
}

/// The spec's partitioning, key and columns must be the dataset's.
pub(crate) fn agree(spec: &Spec, definition: &Definition) -> Result<Calendar> {
    let calendar = spec.calendar()?;
    let theirs = &definition.partition;
    if spec.dataset.partition.column != theirs.column || calendar != theirs.calendar {
        return Err(Error::invalid(format!(
            "the spec says partitions by {} of {} in {}, the dataset has {} of {} in {}",
            calendar.every,
            spec.dataset.partition.column,
            calendar.timezone,
            theirs.calendar.every,
            theirs.column,
            theirs.calendar.timezone
        ))
        .hint("write dataset.partition as the dataset has it"));
    }
    let names: Vec<&str> = definition.columns.iter().map(|column| column.name.as_str()).collect();
    let checks = &spec.checks;
    let mentioned = spec
        .dataset
        .key
        .iter()
        .map(|name| ("dataset.key", name))
        .chain(spec.change.columns.iter().map(|name| ("change.columns", name)))
        .chain(checks.null_rate.keys().map(|name| ("checks.null_rate", name)))
        .chain(checks.sum.keys().map(|name| ("checks.sum", name)))
        .chain(checks.domain.keys().map(|name| ("checks.domain", name)))
        .chain(checks.range.keys().map(|name| ("checks.range", name)))
        .chain(checks.rules.columns().map(|name| ("checks.rules", name)))
        .chain(spec.expect.net_change.keys().map(|name| ("expect.net_change", name)))
        .chain(checks.profile.iter().map(|name| ("checks.profile", name)))
        .chain(checks.bound.iter().filter_map(|one| Some(("checks.bound", one.of.column()?))))
        .chain(
            checks
                .sample
                .iter()
                .flat_map(|one| one.key.keys().chain(&one.by))
                .map(|name| ("checks.sample", name)),
        );
    for (place, name) in mentioned {
        if !names.contains(&name.as_str()) {
            return Err(Error::invalid(format!(
                "{place} names {name:?}, which is no column of the dataset"
            ))
            .hint(format!("the columns are {}", names.join(", "))));
        }
    }
    for (place, name) in checks
        .sum
        .keys()
        .map(|name| ("checks.sum", name))
        .chain(checks.range.keys().map(|name| ("checks.range", name)))
        .chain(checks.bound.iter().filter_map(|bound| match &bound.of {
            Quantity::Column(
                Statistic::Sum | Statistic::Mean | Statistic::Min | Statistic::Max,
                name,
            ) => Some(("checks.bound", name)),
            _ => None,
        }))
    {
        let column = definition.columns.iter().find(|column| &column.name == name);
        let numeric = match column {
            Some(column) => column.field()?.data_type().is_numeric(),
            None => false,
        };
        if !numeric {
            return Err(Error::invalid(format!("{place} names {name:?}, which is no number"))
                .hint("check numbers with sum and range, texts with domain"));
        }
    }
    Ok(calendar)
}

fn range_of(spec: &Spec, given: Option<&Range>) -> Result<Range> {
    given.or(spec.range.as_ref()).cloned().ok_or_else(|| {
        Error::invalid("no range is given, and history is never recomputed without bounds")
            .hint("write [range] with first and last, or say --first and --last")
    })
}

pub(crate) fn read_sql(spec: &Spec) -> Result<(PathBuf, Query)> {
    let path = spec.folder.join(&spec.transform.sql);
    let path = path.canonicalize().unwrap_or(path);
    let text = read_text(&path)?;
    let query = Query::parse(&text, &path.display().to_string())?;
    Ok((path, query))
}

pub(super) fn read_text(path: &Path) -> Result<String> {
    #[expect(clippy::disallowed_methods, reason = "the SQL lies beside the spec, on this machine")]
    fs::read_to_string(path).map_err(|error| {
        Error::invalid("the SQL file cannot be read")
            .with("file", path.display())
            .because(error)
            .hint("SQL files are relative to the spec's own folder")
    })
}

pub(crate) fn empty_tables(
    sources: &BTreeMap<String, PinnedSource>,
) -> Result<BTreeMap<String, PinnedTable>> {
    let table = |source: &PinnedSource| {
        Ok(PinnedTable::new(recipe::table_schema(&source.pin)?, Vec::new(), None))
    };
    sources.iter().map(|(name, source)| Ok((name.clone(), table(source)?))).collect()
}

fn check_as_of(as_of: Option<DateTime<Utc>>, prepared: &Prepared) -> Result<()> {
    let used = prepared.parameters.iter().any(|name| name == "as_of");
    if used && as_of.is_none() {
        return Err(Error::invalid("the SQL uses $as_of, and the spec does not say what it is")
            .hint("write transform.as_of = 2013-04-01T00:00:00Z: the same for every partition and every retry"));
    }
    Ok(())
}

/// How many bytes of each file the query reads.
fn measure_reads(sources: &mut BTreeMap<String, PinnedSource>, prepared: &Prepared) {
    let none = BTreeSet::new();
    for (name, source) in sources {
        let read = prepared.reads.get(name).unwrap_or(&none);
        let by = source.pin.interval.as_ref().filter(|by| !by.in_path).map(|by| by.column.clone());
        for (file, footer) in source.pin.files.iter_mut().zip(&source.footers) {
            let groups = 0..footer.metadata().num_row_groups();
            let wanted = |column: &str| read.contains(column) || by.as_deref() == Some(column);
            file.read_bytes = groups.map(|group| footer.column_bytes(group, wanted)).sum();
        }
    }
}

/// Rows whose interval column is null: they are in no window.
fn timeless(sources: &BTreeMap<String, PinnedSource>) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for (name, source) in sources {
        let Some(by) = source.pin.interval.as_ref().filter(|by| !by.in_path) else { continue };
        let nulls = source.footers.iter().filter_map(|footer| nulls_by_footer(footer, &by.column));
        let nulls: u64 = nulls.sum();
        if nulls > 0 {
            found.insert(name.clone(), nulls);
        }
    }
    found
}

/// What a partition is planned from.
struct Context<'a> {
    query: &'a Query,
    prepared: &'a Prepared,
    definition: &'a Definition,
    spec: &'a Spec,
    rules: &'a Rules,
    pins: &'a BTreeMap<String, SourcePin>,
    production: &'a Partitions,
}

impl Context<'_> {
    /// What decides, as far as it follows from spec and SQL; the caller adds the partitions.
    fn decides(&self) -> Decides {
        let stored = self.spec.parameters.iter().map(|(name, one)| (name.clone(), one.into()));
        Decides {
            dataset: String::new(),
            definition: self.definition.clone(),
            key: self.spec.dataset.key.clone(),
            changed_columns: self.spec.change.columns.clone(),
            sql: self.query.text().to_owned(),
            canonical_sql: self.query.canonical().to_owned(),
            order_sensitive: self.prepared.order_sensitive.clone(),
            parameters: stored.collect(),
            as_of: None,
            sources: self.pins.clone(),
            partitions: Vec::new(),
            checks: Checks { rules: self.rules.clone(), ..self.spec.checks.clone() },
            expect: self.spec.expect.clone(),
            compare: self.spec.compare.clone(),
            publish_unit: self.spec.publish.unit,
            rules: recipe::rules(),
        }
    }
}

fn plan_all(
    intervals: &[Interval],
    from: &Context<'_>,
    as_of: DateTime<Utc>,
    sources: &BTreeMap<String, PinnedSource>,
) -> Result<(Vec<PlannedPartition>, Vec<Estimate>)> {
    let column = &from.definition.partition;
    let mut partitions = Vec::new();
    let mut estimates = Vec::new();
    for interval in intervals {
        let values = Parameters::of(interval, column, as_of, &from.spec.parameters)?;
        let partition = plan_partition(interval, from, &values)?;
        estimates.push(estimate(&partition, sources, &column.calendar)?);
        partitions.push(partition);
    }
    Ok((partitions, estimates))
}

fn plan_partition(
    interval: &Interval,
    from: &Context<'_>,
    values: &Parameters,
) -> Result<PlannedPartition> {
    let calendar = &from.definition.partition.calendar;
    let mut reads = BTreeMap::new();
    for (name, source) in from.pins {
        if from.prepared.reads.contains_key(name) {
            reads.insert(name.clone(), recipe::files_read(source, calendar, interval)?);
        }
    }
    let parameters = values.described(&from.prepared.parameters);
    let recipe = recipe::recipe(&Ingredients {
        canonical_sql: from.query.canonical(),
        order_sensitive: !from.prepared.order_sensitive.is_empty(),
        parameters: &parameters,
        definition: from.definition,
        key: &from.spec.dataset.key,
        sources: from.pins,
        reads: &reads,
        interval,
    })?;
    let base = from.production.at(interval.start).map(|partition| {
        Ok::<_, Error>(BasePartition {
            identity: partition.identity()?,
            rows: partition.rows,
            bytes: partition.bytes,
        })
    });
    Ok(PlannedPartition {
        interval: interval.clone(),
        recipe,
        parameters,
        reads,
        base: base.transpose()?,
    })
}

/// Rows and bytes that a partition's query reads.
fn estimate(
    partition: &PlannedPartition,
    sources: &BTreeMap<String, PinnedSource>,
    calendar: &Calendar,
) -> Result<Estimate> {
    let mut sum = Estimate::default();
    for (name, files) in &partition.reads {
        let Some(source) = sources.get(name) else { continue };
        let by = source.pin.interval.as_ref();
        let window = match by {
            Some(by) => {
                recipe::row_window(by, calendar, &partition.interval, (by.lookback, by.lookahead))?
            }
            None => None,
        };
        for number in files {
            let (Some(file), Some(footer)) =
                (source.pin.files.get(*number), source.footers.get(*number))
            else {
                continue;
            };
            let groups = match &window {
                Some(window) => {
                    groups_in_window(footer, &window.column, &window.start, &window.end)
                }
                None => (0..footer.metadata().num_row_groups()).collect(),
            };
            let rows: i64 =
                groups.iter().map(|group| footer.metadata().row_group(*group).num_rows()).sum();
            let share = groups.len() as u64;
            let of = (footer.metadata().num_row_groups() as u64).max(1);
            sum.bytes += file.read_bytes * share / of;
            if by.is_some() {
                sum.rows += u64::try_from(rows).unwrap_or_default();
            }
        }
    }
    Ok(sum)
}

fn terms_of(spec: &Spec) -> Result<Terms> {
    let change = &spec.change;
    let expires_at = change.expires.as_ref().map(|value| expiry(&value.to_string())).transpose()?;
    Ok(Terms {
        reason: change.reason.clone(),
        owner: change.owner.clone(),
        why_range: change.why_range.clone(),
        downstream: change.downstream.clone(),
        side_effects: change.side_effects.clone(),
        expires_at,
        window: change.window,
        rollback_window: spec.publish.rollback_window,
        limits: spec.limits,
    })
}

/// An instant with its offset, or a date, whose end counts, in UTC.
fn expiry(text: &str) -> Result<DateTime<Utc>> {
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        return Ok(at.with_timezone(&Utc));
    }
    let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok().and_then(|date| date.succ_opt());
    date.map(|date| date.and_time(chrono::NaiveTime::MIN).and_utc()).ok_or_else(|| {
        Error::invalid(format!("change.expires = {text} is no deadline"))
            .hint("write a date (2013-05-01), or an instant with its offset (2013-05-01T12:00:00Z)")
    })
}

/// The owner's rules: a plan that breaks one is refused before anything is stored.
fn check_policy(plan: &Plan, policy: &Policy) -> Result<()> {
    let terms = &plan.terms;
    for field in &policy.require {
        let (given, name) = match field {
            PolicyField::WhyRange => (terms.why_range.is_some(), "change.why_range"),
            PolicyField::Downstream => (terms.downstream.is_some(), "change.downstream"),
            PolicyField::SideEffects => (terms.side_effects.is_some(), "change.side_effects"),
            PolicyField::Expires => (terms.expires_at.is_some(), "change.expires"),
            PolicyField::Window => (terms.window.is_some(), "change.window"),
            PolicyField::Commit => {
                (plan.provenance.changed_since_commit == Some(false), "a committed SQL file")
            }
            PolicyField::Expect => (!plan.decides.expect.is_empty(), "[expect]"),
        };
        if !given {
            return Err(Error::invalid(format!("the dataset's policy requires {name}"))
                .hint("add it to the spec; reissue policy shows all rules"));
        }
    }
    if plan.decides.publish_unit == Unit::Batch && !policy.publish_by_batch {
        return Err(Error::invalid(
            "the dataset's policy does not allow publishing batch by batch",
        )
        .hint("write publish.unit = \"run\", or ask the owner to set publish_by_batch"));
    }
    let limits = &terms.limits;
    let ceilings = [
        ("partitions", plan.decides.partitions.len(), policy.limits.partitions),
        (
            "limits.partitions_per_batch",
            limits.partitions_per_batch,
            policy.limits.partitions_per_batch,
        ),
        ("limits.concurrent_batches", limits.concurrent_batches, policy.limits.concurrent_batches),
        ("limits.source_queries", limits.source_queries, policy.limits.source_queries),
    ];
    for (name, value, ceiling) in ceilings {
        if let Some(most) = ceiling.filter(|most| value as u64 > *most) {
            return Err(Error::invalid(format!(
                "{name} is {value}, the dataset's policy allows {most}"
            ))
            .hint("lower it, or ask the owner"));
        }
    }
    Ok(())
}

pub(crate) async fn find_kept(dataset: &Dataset, plan: &Plan) -> Result<BTreeMap<String, Kept>> {
    let partitions = &plan.decides.partitions;
    let wanted = partitions.iter().map(|partition| partition.recipe.clone()).collect();
    let kept = recipe::find_kept(dataset, &plan.id, &wanted).await?;
    let named = partitions.iter().filter_map(|partition| {
        let one = kept.get(&partition.recipe)?;
        (one.record.partition == partition.interval.name)
            .then(|| (partition.interval.name.clone(), one.clone()))
    });
    Ok(named.collect())
}
