// The filters of a list.

/** What was left empty stays out of the address, which people share. */
export function startFilters() {
  for (const form of document.querySelectorAll("[data-filters]")) {
    form.addEventListener("formdata", ({ formData }) => {
      for (const [name, value] of [...formData]) if (!value) formData.delete(name);
    });
  }
}
