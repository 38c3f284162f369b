// Folders of the user and the project: which, what is in them, and following them without a gap.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { contentFolders, followFolders, listFolder } from "../../../core/services/content-folders.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "mortise-content-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

it("the project's folder comes before the user's", () => {
  expect(contentFolders({ home: "/h", cwd: "/p" }, "rules")).toEqual([
    { path: "/p/.mortise/rules", origin: "project" },
    { path: "/h/rules", origin: "user" },
  ]);
});

describe("listFolder", () => {
  it("gives accepted entries, sorted, without hidden ones", async () => {
    for (const name of ["b.md", "a.md", ".hidden.md", "c.txt"]) writeFileSync(join(folder, name), "");
    const warnings: string[] = [];
    const found = await listFolder(
      folder,
      (entry) => entry.name.endsWith(".md"),
      (message) => warnings.push(message),
    );
    expect(found).toEqual([join(folder, "a.md"), join(folder, "b.md")]);
    expect(warnings).toEqual([]);
  });

  it("gives none for a folder that is not there, and warns of a file in its place", async () => {
    const warnings: string[] = [];
    const warn = (message: string) => warnings.push(message);
    expect(await listFolder(join(folder, "nothing"), () => true, warn)).toEqual([]);
    expect(warnings).toEqual([]);
    writeFileSync(join(folder, "file"), "");
    expect(await listFolder(join(folder, "file"), () => true, warn)).toEqual([]);
    expect(warnings).toEqual([expect.stringContaining(`Cannot read folder "${join(folder, "file")}": `)]);
  });
});

describe("followFolders", () => {
  it("sees what changes while the first scan runs, and folders that a scan names", async () => {
    let scans = 0;
    let again: () => void = () => {};
    const paths = [folder];
    const following = followFolders({
      paths: () => [...paths],
      async scan() {
        if (++scans === 1) writeFileSync(join(folder, "late"), "");
        again();
      },
      onError: (error) => {
        throw error;
      },
    });
    try {
      const second = new Promise<void>((resolve) => {
        again = resolve;
      });
      await following.first;
      await second;
      const inner = join(folder, "inner");
      const third = new Promise<void>((resolve) => {
        again = resolve;
      });
      paths.push(inner);
      mkdirSync(inner);
      await third;
      const fourth = new Promise<void>((resolve) => {
        again = resolve;
      });
      // Only a watch on the inner folder tells of this.
      writeFileSync(join(inner, "file"), "");
      await fourth;
      expect(scans).toBeGreaterThanOrEqual(4);
    } finally {
      following.close();
    }
  });

  it("gives the failure of the first scan to its caller, and goes on after later ones", async () => {
    const broken = followFolders({ paths: () => [folder], scan: () => Promise.reject(new Error("no")), onError: () => {} });
    await expect(broken.first).rejects.toThrow("no");
    broken.close();
    let scans = 0;
    const errors: unknown[] = [];
    let told: () => void = () => {};
    const following = followFolders({
      paths: () => [folder],
      async scan() {
        if (++scans === 2) throw new Error("later");
        if (scans === 3) told();
      },
      onError: (error) => {
        errors.push(error);
        told();
      },
    });
    const next = () =>
      new Promise<void>((resolve) => {
        told = resolve;
      });
    await following.first;
    for (const name of ["one", "two"]) {
      const seen = next();
      writeFileSync(join(folder, name), "");
      await seen;
    }
    expect(errors).toEqual([new Error("later")]);
    following.close();
  });
});
