import type { LinksPayload } from "../generated/contract";

/** The provenance map of one run, grown as links arrive. Ids are interned, neighbours are lists of numbers. */
export class LinkIndex {
  private readonly numbers = new Map<string, number>();
  private readonly ids: string[] = [];
  private readonly up: number[][] = [];
  private readonly down: number[][] = [];
  private readonly seen = new Set<string>();

  /** Adds an artifact's links; false when this artifact was added before. */
  add(hash: string, payload: LinksPayload): boolean {
    if (this.seen.has(hash)) return false;
    this.seen.add(hash);
    const own = payload.strings.map((text) => (text.includes("/") ? this.intern(text) : -1));
    const { source, target } = payload.links;
    for (let i = 0; i < source.length; i++) {
      const from = own[source[i]!]!;
      const to = own[target[i]!]!;
      if (from < 0 || to < 0) continue;
      this.down[from]!.push(to);
      this.up[to]!.push(from);
    }
    return true;
  }

  clear(): void {
    this.numbers.clear();
    this.seen.clear();
    for (const list of [this.ids, this.up, this.down]) list.length = 0;
  }

  /** Source lines that something was made from. */
  lines(): ReadonlySet<number> {
    const found = new Set<number>();
    this.ids.forEach((id, at) => {
      if (id.startsWith("line/") && this.down[at]!.length) found.add(Number(id.slice(5)));
    });
    return found;
  }

  /** How many entities are known; it only grows, until another run is opened. */
  get size(): number {
    return this.ids.length;
  }

  has(id: string): boolean {
    return this.numbers.has(id);
  }

  parents(id: string): string[] {
    return this.neighbours(this.up, id);
  }

  children(id: string): string[] {
    return this.neighbours(this.down, id);
  }

  /**
   * Everything that is the same thing elsewhere: strictly upstream of the entity to its lines, and strictly
   * downstream to the generated code. Never up and down again, which would reach all of the run through shared kernels.
   */
  closure(id: string): ReadonlySet<string> {
    const start = this.numbers.get(id);
    const reached = new Set<string>([id]);
    if (start === undefined) return reached;
    for (const side of [this.up, this.down]) {
      const visited = new Set([start]);
      const queue = [start];
      for (let at = queue.pop(); at !== undefined; at = queue.pop()) {
        for (const next of side[at]!) {
          if (visited.has(next)) continue;
          visited.add(next);
          queue.push(next);
          reached.add(this.ids[next]!);
        }
      }
    }
    return reached;
  }

  /** What an entity was, or else became, among those that are `known`: upstream first, and no farther than needed. */
  nearest(id: string, known: (id: string) => boolean): string[] {
    const start = this.numbers.get(id);
    if (start === undefined) return [];
    for (const side of [this.up, this.down]) {
      const visited = new Set([start]);
      for (let level = [start]; level.length; ) {
        const next = [...new Set(level.flatMap((at) => side[at]!))].filter((at) => !visited.has(at));
        for (const at of next) visited.add(at);
        const hits = next.map((at) => this.ids[at]!).filter(known);
        if (hits.length) return hits;
        level = next;
      }
    }
    return [];
  }

  private neighbours(side: number[][], id: string): string[] {
    const at = this.numbers.get(id);
    return at === undefined ? [] : side[at]!.map((number) => this.ids[number]!);
  }

  private intern(id: string): number {
    let number = this.numbers.get(id);
    if (number === undefined) {
      number = this.ids.length;
      this.numbers.set(id, number);
      this.ids.push(id);
      this.up.push([]);
      this.down.push([]);
    }
    return number;
  }
}
