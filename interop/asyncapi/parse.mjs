// Reads a document of AsyncAPI from stdin, and says what is wrong with it: everything that is more than a hint.
import { Parser } from "@asyncapi/parser";
import { text } from "node:stream/consumers";

const { document, diagnostics } = await new Parser().parse(await text(process.stdin));
const wrong = diagnostics.filter((d) => d.severity <= 1);
for (const d of wrong) console.error(d.code, d.path.join("."), d.message);
if (!document || wrong.length > 0) process.exit(1);
console.log(document.version(), document.messages().all().length);
