import { Fragment } from "preact";

/** A sentence whose `code between backticks`, torch's and ours, is set as code. A lone backtick stays as it is. */
export function Words({ text }: { text: string }) {
  const parts = text.split(/`([^`\n]+)`/);
  return (
    <>
      {parts.map((part, i) => (
        <Fragment key={i}>{i % 2 ? <code>{part}</code> : part}</Fragment>
      ))}
    </>
  );
}
