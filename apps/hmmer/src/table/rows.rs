//! From hits to rows: what is reported, in which order.

use crate::domain::{Aligned, Column, Domain, Hit};
use crate::profile::Profile;
use crate::thresholds::{Threshold, Thresholds, probability};

/// A hit and the sequence it is in.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    /// Name of the sequence.
    pub name: String,
    /// The rest of its header line; may be empty.
    pub description: String,
    /// Its place in the database.
    pub index: u64,
    /// Its residues.
    pub length: u64,
    /// The hit.
    pub hit: Hit,
}

impl Named {
    /// About what the hit takes, its rows in the tables included, in bytes.
    pub fn bytes(&self, profile: &Profile) -> u64 {
        let (named, row, domain) = (size_of::<Named>(), size_of::<Row>(), size_of::<DomainRow>());
        let accession = profile.accession.as_ref().map_or(0, String::len);
        let texts = [self.name.len(), self.description.len(), profile.name.len(), accession, 1].map(allocated);
        // While lists of hits grow and become one there is twice the room, and what is copied.
        let hit = 3 * named + row + texts.iter().sum::<usize>();
        let domains = &self.hit.domains;
        let columns = domains.iter().filter_map(|domain| Some(domain.aligned.as_ref()?.columns.capacity()));
        // Of an alignment there is a copy, as long as the hit is a hit and a row.
        let aligned: usize = columns.map(|columns| 2 * allocated(columns * size_of::<Column>()) + 2 * domain).sum();
        (hit + allocated(domains.capacity() * size_of::<Domain>()) + aligned) as u64
    }
}

/// What so many bytes take of the memory that the allocator gives.
fn allocated(bytes: usize) -> usize {
    (bytes + 8).next_multiple_of(16).max(32)
}

/// The significance of a sequence or domain.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Scored {
    /// Expected number of sequences that score as high by chance.
    pub evalue: f64,
    /// Bits, corrected for bias.
    pub score: f64,
    /// Bits subtracted for bias.
    pub bias: f64,
}

/// One line of the table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Name of the sequence.
    pub target: String,
    /// Its accession, `-` if none.
    pub target_accession: String,
    /// Name of the profile.
    pub query: String,
    /// Its accession, `-` if none.
    pub query_accession: String,
    /// The sequence.
    pub full: Scored,
    /// Its best domain.
    pub best: Scored,
    /// Expected number of domains (exp).
    pub expected: f64,
    /// Regions (reg).
    pub regions: u32,
    /// Regions resolved by clustering (clu).
    pub clustered: u32,
    /// Overlapping envelopes (ov).
    pub overlaps: u32,
    /// Envelopes (env).
    pub envelopes: u32,
    /// Domains (dom).
    pub domains: u32,
    /// Domains reported (rep).
    pub reported: u32,
    /// Domains included (inc).
    pub included: u32,
    /// Description of the sequence, `-` if none.
    pub description: String,
}

/// The table of one profile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// The rows of all hits that are reported, the most significant first.
    pub hits: Vec<Row>,
    /// How many of them are significant: the first ones.
    pub significant: usize,
    /// Their reported domains, hit by hit, of those whose alignments are known.
    pub domains: Vec<DomainRow>,
    /// Number of sequences that E-values refer to.
    pub targets: f64,
    /// Number of sequences that E-values of domains refer to.
    pub domain_targets: f64,
}

/// One line of the table of domains.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DomainRow {
    /// The hit's place in the table of hits.
    pub hit: usize,
    /// Residues of the sequence.
    pub length: u64,
    /// Its number among the hit's reported domains, from 1.
    pub number: u32,
    /// Its score; the E-value refers to the number of sequences (i-Evalue).
    pub domain: Scored,
    /// The E-value that refers to the number of reported sequences (c-Evalue).
    pub conditional: f64,
    /// Its alignment.
    pub aligned: Aligned,
    /// First and last residue of its envelope.
    pub envelope: (usize, usize),
    /// Whether it is significant, in a significant hit.
    pub is_significant: bool,
}

impl DomainRow {
    /// Expected accuracy of its alignment, per residue of its envelope.
    pub fn accuracy(&self) -> f32 {
        self.aligned.accuracy / (1 + self.envelope.1 - self.envelope.0) as f32
    }
}

/// The hits that are reported.
pub fn rows(profile: &Profile, mut hits: Vec<Named>, thresholds: &Thresholds) -> Rows {
    let reaches = |hit: &Hit, threshold: Threshold| threshold.passes(hit.score, hit.log_p, thresholds.targets);
    hits.retain(|named| reaches(&named.hit, thresholds.report));
    // Equal P-values are those of low scores, which are all 1; then names decide, and at last the database.
    hits.sort_unstable_by(|a, b| {
        let by_p = a.hit.log_p.total_cmp(&b.hit.log_p);
        by_p.then_with(|| a.name.cmp(&b.name)).then_with(|| a.index.cmp(&b.index))
    });
    let significant = hits.iter().filter(|named| reaches(&named.hit, thresholds.include)).count();
    // Domains are looked for in reported sequences only, so their E-values for thresholds refer to as many.
    let domain_targets = thresholds.domain_targets.unwrap_or(hits.len() as f64);
    let evalue = |log_p: f64| probability(log_p) * thresholds.targets;
    let mut domains = Vec::new();
    let row = |(place, named): (usize, Named)| {
        let hit = &named.hit;
        let hidden = hidden(hit);
        let within = |threshold: Threshold| {
            let passes = move |domain: &Domain| threshold.passes(domain.score, domain.log_p, domain_targets);
            let shown = hit.domains.iter().zip(&hidden).filter(move |(domain, hidden)| passes(domain) && !**hidden);
            shown.map(|(domain, _)| domain)
        };
        let aligned = within(thresholds.report_domains).zip(1..);
        domains.extend(aligned.filter_map(|(domain, number)| {
            let aligned = domain.aligned.clone()?;
            Some(DomainRow {
                hit: place,
                length: named.length,
                number,
                domain: Scored { evalue: evalue(domain.log_p), score: domain.score.into(), bias: domain.bias },
                conditional: probability(domain.log_p) * domain_targets,
                aligned,
                envelope: (domain.from, domain.to),
                is_significant: reaches(hit, thresholds.include)
                    && thresholds.include_domains.passes(domain.score, domain.log_p, domain_targets),
            })
        }));
        let best = hit.best();
        Row {
            target_accession: "-".to_owned(),
            query: profile.name.clone(),
            query_accession: profile.accession.clone().unwrap_or_else(|| "-".to_owned()),
            full: Scored { evalue: evalue(hit.log_p), score: hit.score.into(), bias: hit.bias.into() },
            best: Scored { evalue: evalue(best.log_p), score: best.score.into(), bias: best.bias },
            expected: hit.expected.into(),
            regions: hit.regions,
            clustered: hit.clustered,
            overlaps: hit.overlaps,
            envelopes: hit.envelopes,
            domains: hit.domains.len() as u32,
            reported: within(thresholds.report_domains).count() as u32,
            included: match reaches(hit, thresholds.include) {
                true => within(thresholds.include_domains).count() as u32,
                false => 0,
            },
            description: if named.description.is_empty() { "-".to_owned() } else { named.description },
            target: named.name,
        }
    };
    let hits = hits.into_iter().enumerate().map(row).collect();
    Rows { hits, significant, domains, targets: thresholds.targets, domain_targets }
}

/// Which domains are the worse of two that overlap and have the same alignment: one domain found twice, not reported.
fn hidden(hit: &Hit) -> Vec<bool> {
    let mut hidden = vec![false; hit.domains.len()];
    let residues = |domain: &Domain| domain.aligned.as_ref().map(|aligned| aligned.residues);
    for (i, a) in hit.domains.iter().enumerate() {
        for (j, b) in hit.domains.iter().enumerate().skip(i + 1) {
            if residues(a).is_some() && residues(a) == residues(b) {
                hidden[if a.score >= b.score { j } else { i }] = true;
            }
        }
    }
    hidden
}
